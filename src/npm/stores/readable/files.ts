// Writes the files of readable logs. They are derived from records, so nothing is synced to the disk: a file that a crash has
// damaged is made anew.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import path from "node:path";

import { isFolder, namesIn, readWhole, undefinedIfMissing } from "../files/disk.js";

/** Some further lines of a log, and the key of the entry at their end. */
export interface Lines {
  readonly bytes: Buffer;
  readonly last: string;
}

/** How far a log is written: its size, and the key of the last entry. */
export interface End {
  readonly size: number;
  readonly last: string | undefined;
}

const START: End = { size: 0, last: undefined };
const NO_LINKS = constants.O_NOFOLLOW ?? 0;
const TEMPORARY = ".new.";
const LOG = ".log.jsonl";

/** The file with the list of sessions. */
export const LIST = "sessions.json";

/** Makes the folder. A symbolic link in its place, or above it up to `root`, is refused. */
export async function makeFolder(root: string, names: readonly string[]): Promise<void> {
  for (let n = 1; n <= names.length; n++) {
    const folder = path.join(root, ...names.slice(0, n));
    if (!(await isFolder(folder))) await fs.mkdir(folder, { mode: 0o700, recursive: true });
  }
}

/**
 * Appends to a log what it lacks. If the file is not what it should be, it is written anew. `from` says how far it is known to be
 * right; `linesAfter` makes the lines behind an entry. Without any line there is no file.
 */
export async function bringUpToDate(file: string, from: End | undefined, linesAfter: (last: string | undefined) => AsyncIterable<Lines>): Promise<End> {
  const end = (from && (await appendTo(file, from, linesAfter))) ?? (await appendTo(file, START, linesAfter)) ?? (await writeAnew(file, linesAfter));
  if (end.size === 0) await removeFile(file);
  return end;
}

/** Appends the lines after `from`; undefined if the file has something else there. */
async function appendTo(file: string, from: End, linesAfter: (last: string | undefined) => AsyncIterable<Lines>): Promise<End | undefined> {
  const handle = await fs.open(file, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | NO_LINKS, 0o600);
  try {
    const { size } = await handle.stat();
    let end = from;
    if (size < end.size) return undefined;
    for await (const { bytes, last } of linesAfter(from.last)) {
      const there = await readAt(handle, end.size, Math.min(bytes.length, Math.max(0, size - end.size)));
      if (!bytes.subarray(0, there.length).equals(there)) return undefined;
      if (there.length < bytes.length) await handle.appendFile(bytes.subarray(there.length));
      end = { size: end.size + bytes.length, last };
    }
    return end.size < size ? undefined : end;
  } finally {
    await handle.close();
  }
}

async function readAt(handle: fs.FileHandle, position: number, length: number): Promise<Buffer> {
  if (length === 0) return Buffer.alloc(0);
  const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

async function writeAnew(file: string, linesAfter: (last: string | undefined) => AsyncIterable<Lines>): Promise<End> {
  return replace(file, async (handle) => {
    let end = START;
    for await (const { bytes, last } of linesAfter(undefined)) {
      await handle.writeFile(bytes);
      end = { size: end.size + bytes.length, last };
    }
    return end;
  });
}

/** Replaces a file as a whole, unless it has these bytes already. */
export async function writeFile(file: string, bytes: Buffer): Promise<void> {
  if ((await readWhole(file))?.equals(bytes)) return;
  await replace(file, (handle) => handle.writeFile(bytes));
}

async function replace<T>(file: string, write: (handle: fs.FileHandle) => Promise<T>): Promise<T> {
  const temporary = path.join(path.dirname(file), `${TEMPORARY}${process.pid}.${randomBytes(8).toString("hex")}`);
  try {
    const handle = await fs.open(temporary, "wx", 0o600);
    const written = await write(handle).finally(() => handle.close());
    await fs.rename(temporary, file);
    return written;
  } catch (error) {
    await removeFile(temporary).catch(() => {});
    throw error;
  }
}

export async function removeFile(file: string): Promise<void> {
  await undefinedIfMissing(() => fs.unlink(file));
}

/** The names of the logs in a folder. Temporary files that a crashed process has left are removed. */
export async function logsIn(folder: string): Promise<readonly string[]> {
  const names = await namesIn(folder);
  for (const name of names) if (name.startsWith(TEMPORARY)) await removeFile(path.join(folder, name));
  return names.filter((name) => name.endsWith(LOG));
}

/** Removes the logs in a folder and their list, and the folders up to `root` that are empty then. Other files stay. */
export async function removeLogs(root: string, names: readonly string[]): Promise<void> {
  // A symbolic link would lead to files that are not ours.
  for (let n = 1; n <= names.length; n++) if (!(await isFolder(path.join(root, ...names.slice(0, n))))) return;
  const folder = path.join(root, ...names);
  for (const name of [...(await logsIn(folder)), LIST]) await removeFile(path.join(folder, name));
  for (let n = names.length; n > 0; n--) {
    const isEmpty = await fs.rmdir(path.join(root, ...names.slice(0, n))).then(() => true, () => false);
    if (!isEmpty) return;
  }
}
