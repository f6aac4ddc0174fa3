// What the file store asks of the disk: never through a symbolic link, and every failure is a typed error with the path.

import { constants } from "node:fs";
import * as fs from "node:fs/promises";

import { LockgateError } from "../errors.js";
import type { ErrorCode } from "../types.js";

const NO_LINKS = constants.O_NOFOLLOW ?? 0;

/** Opens a file for reading; undefined if it is not there. */
export async function openToRead(file: string): Promise<fs.FileHandle | undefined> {
  return absent(() => fs.open(file, constants.O_RDONLY | NO_LINKS));
}

/** All bytes of a file; undefined if it is not there. */
export async function readWhole(file: string): Promise<Buffer | undefined> {
  const handle = await openToRead(file);
  if (handle === undefined) return undefined;
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Writes a new file, to the disk itself; it must not be there yet. A failure leaves nothing behind. */
export async function writeNew(file: string, write: (handle: fs.FileHandle) => Promise<void>): Promise<void> {
  const handle = await fs.open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NO_LINKS, 0o600);
  try {
    await write(handle);
    await handle.sync();
    await handle.close();
  } catch (error) {
    await handle.close().catch(() => {});
    await fs.unlink(file).catch(() => {});
    throw error;
  }
}

/** Makes the names in a folder durable. Windows cannot, and need not. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await fs.open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Whether there is a folder; what else there is, such as a link, is refused. */
export async function isFolder(folder: string): Promise<boolean> {
  const found = await absent(() => fs.lstat(folder));
  if (found === undefined) return false;
  if (found.isDirectory()) return true;
  throw new LockgateError("STORE_UNAVAILABLE", `${folder} is not a folder of its own`, {
    hint: found.isSymbolicLink() ? "the store follows no links: put a folder there" : "move away what is there",
  });
}

/** The names in a folder; none if it is not there. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await absent(() => fs.readdir(folder))) ?? [];
}

/** What the work answers with; undefined if it met something that is not there. */
export async function absent<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | null)?.code ?? "");
}

const CODES: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOSPC: ["STORE_QUOTA", "the disk is full: make room"],
  EDQUOT: ["STORE_QUOTA", "the quota of the disk is used up: make room"],
  EFBIG: ["STATE_TOO_LARGE", "the file system takes no file as large as that"],
  EROFS: ["STORE_UNAVAILABLE", "the file system is read-only: choose a folder that can be written to"],
  EACCES: ["STORE_UNAVAILABLE", "this process may not do that: see to the permissions of the folder"],
  EPERM: ["STORE_UNAVAILABLE", "this process may not do that: see to the permissions of the folder"],
  EMFILE: ["STORE_UNAVAILABLE", "this process has too many files open: raise `ulimit -n`"],
  ENFILE: ["STORE_UNAVAILABLE", "this machine has too many files open"],
  ELOOP: ["STORE_UNAVAILABLE", "the store follows no links: put the file itself there"],
  ENOTDIR: ["STORE_UNAVAILABLE", "a file is where the store wants a folder: choose another folder"],
};

/** What the disk threw as an error of ours. The message has the path, never what was to be written. */
export function fromDisk(error: unknown): unknown {
  if (LockgateError.isInstance(error) || !(error instanceof Error)) return error;
  const [code, hint] = CODES[codeOf(error)] ?? ["STORE_UNAVAILABLE", "see to the disk that holds the store"];
  return new LockgateError(code, `the file store failed: ${error.message}`, { hint, cause: error });
}
