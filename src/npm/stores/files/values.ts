// The values of records in the files of a generation, and the errors for files that are damaged or gone.

import path from "node:path";
import type * as fs from "node:fs/promises";

import { LockgateError } from "../../errors.js";
import { checksum, encodeHead } from "./batch-file.js";
import type { FileRecord } from "./batch-file.js";
import { openToRead } from "./disk.js";

/** Where a record is: its position in a file of the generation. */
export interface RecordLocation extends FileRecord {
  /** The name of the file. */
  readonly file: string;
}

/** Reads a file up to the end of its first line, or a little further. */
export async function readLine(handle: fs.FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(65_536), 0, 65_536, at);
    const chunk = buffer.subarray(0, bytesRead);
    chunks.push(chunk);
    at += bytesRead;
    if (bytesRead === 0 || chunk.includes(10)) return Buffer.concat(chunks);
  }
}

/** Writes a base file, a hundred records at a time. */
export async function writeBase(handle: fs.FileHandle, folder: string, locations: readonly RecordLocation[]): Promise<void> {
  await handle.writeFile(encodeHead(locations));
  for (let at = 0; at < locations.length; at += 100) {
    const values = await readValues(folder, locations.slice(at, at + 100));
    if (values === undefined) throw new Error("the generation is gone");
    await handle.writeFile(Buffer.concat(values as Uint8Array[]));
  }
}

/** The bytes of each record; undefined if a file does not exist any more. Each file is opened once, one at a time. */
export async function readValues(folder: string, locations: readonly (RecordLocation | undefined)[]): Promise<(Uint8Array | undefined)[] | undefined> {
  const values: (Uint8Array | undefined)[] = locations.map(() => undefined);
  const byFile = new Map<string, number[]>();
  locations.forEach((each, index) => {
    if (each) byFile.set(each.file, [...(byFile.get(each.file) ?? []), index]);
  });
  for (const [name, indexes] of byFile) {
    const file = path.join(folder, name);
    const handle = await openToRead(file);
    if (handle === undefined) return undefined;
    try {
      for (const index of indexes) values[index] = await readValue(handle, file, locations[index]!);
    } finally {
      await handle.close();
    }
  }
  return values;
}

async function readValue(handle: fs.FileHandle, file: string, { offset, length, check }: RecordLocation): Promise<Uint8Array> {
  const value = new Uint8Array(length);
  const { bytesRead } = length === 0 ? { bytesRead: 0 } : await handle.read(value, 0, length, offset);
  if (bytesRead !== length || checksum(value) !== check) throw unreadable(file);
  return value;
}

/** The error for a file whose bytes have changed. */
export function unreadable(file: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `${file} is damaged: its checksum or size is wrong`, {
    hint: "the file is kept: restore it from a backup, or move this user's folder away, with the file <folder>.has beside it",
  });
}

/** The error for a file that is gone. */
export function lost(file: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `a batch of the file store is missing: ${file}`, {
    hint: "nothing was changed: restore the file from a backup",
  });
}

/** The error for a folder of a user that is gone. */
export function lostUser(folder: string, marker: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `the folder ${folder} is missing`, {
    hint: `restore it from a backup; to begin anew, remove ${marker} too, while no process uses the store`,
  });
}
