// The file beside the folder of a user that says that the folder was made: so a folder that is gone is lost, and not new.

import * as fs from "node:fs/promises";
import path from "node:path";

import { codeOf, syncFolder, undefinedIfMissing, writeNew } from "./disk.js";

const ENDING = ".has";

/** Whether a file beside the folders of users is such a mark. */
export const isMark = (name: string): boolean => name.endsWith(ENDING);

/** The mark of a folder. No id has its name as a part of a key. */
export class UserMark {
  /** The path of the mark. */
  readonly file: string;
  #isMade = false;

  /** The mark of this folder. */
  constructor(folder: string) {
    this.file = `${folder}${ENDING}`;
  }

  /** Whether the folder was made. */
  async exists(): Promise<boolean> {
    return (await undefinedIfMissing(() => fs.lstat(this.file))) !== undefined;
  }

  /** Makes the mark, also for a folder of an older version. */
  async make(): Promise<void> {
    if (this.#isMade) return;
    await writeNew(this.file, (handle) => handle.writeFile("")).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw error;
    });
    await syncFolder(path.dirname(this.file));
    this.#isMade = true;
  }
}
