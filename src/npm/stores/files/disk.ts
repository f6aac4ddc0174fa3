// File operations of the file store. They never follow symbolic links. Every failure becomes a typed error with the path.

import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import * as fs from "node:fs/promises";

import { LockgateError } from "../../errors.js";
import type { ErrorCode } from "../../types.js";

const NO_LINKS = constants.O_NOFOLLOW ?? 0;

/** Opens a file for reading; undefined if it does not exist. */
export async function openToRead(file: string): Promise<fs.FileHandle | undefined> {
  return undefinedIfMissing(() => fs.open(file, constants.O_RDONLY | NO_LINKS));
}

/** All bytes of a file; undefined if it does not exist. */
export async function readWhole(file: string): Promise<Buffer | undefined> {
  const handle = await openToRead(file);
  if (handle === undefined) return undefined;
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Writes a new file and syncs it to the disk. The file must not exist. After a failure the file is removed. */
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

/** Makes the file names of a folder durable. Windows neither supports nor needs this. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await fs.open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Whether a folder exists. Throws if there is something else, such as a link. */
export async function isFolder(folder: string): Promise<boolean> {
  const found = await undefinedIfMissing(() => fs.lstat(folder));
  if (found === undefined) return false;
  if (found.isDirectory()) return true;
  throw new LockgateError("STORE_UNAVAILABLE", `${folder} is not a folder`, {
    hint: found.isSymbolicLink() ? "the store follows no symbolic links: replace the link by a folder" : "move the file away",
  });
}

/** The names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await undefinedIfMissing(() => fs.readdir(folder))) ?? [];
}

/** The numbers in the names in a folder: `7`, and also `last.7`. */
export async function numbersIn(folder: string): Promise<number[]> {
  const numbers = (await namesIn(folder)).map((name) => /^(?:last\.)?(\d+)$/.exec(name)?.[1]);
  return numbers.filter((number) => number !== undefined).map(Number);
}

/** Runs `work`; undefined if it fails because a file or folder does not exist. */
export async function undefinedIfMissing<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** The code of an error of the file system, such as "ENOENT". "" if it has none. */
export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException | null)?.code ?? "");
}

const CODES: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ENOSPC: ["STORE_QUOTA", "the disk is full: free some space"],
  EDQUOT: ["STORE_QUOTA", "the quota of the disk is used up: free some space"],
  EFBIG: ["STATE_TOO_LARGE", "the file system does not support files of this size"],
  EROFS: ["STORE_UNAVAILABLE", "the file system is read-only: choose a writable folder"],
  EACCES: ["STORE_UNAVAILABLE", "this process lacks the permission: check the permissions of the folder"],
  EPERM: ["STORE_UNAVAILABLE", "this process lacks the permission: check the permissions of the folder"],
  EMFILE: ["STORE_UNAVAILABLE", "this process has too many files open: raise `ulimit -n`"],
  ENFILE: ["STORE_UNAVAILABLE", "this machine has too many files open"],
  ELOOP: ["STORE_UNAVAILABLE", "the store follows no symbolic links: replace the link by the file"],
  ENOTDIR: ["STORE_UNAVAILABLE", "there is a file where the store needs a folder: choose another folder"],
};

/** Makes a LockgateError from an error of the file system. The message has the path, never the content. */
export function fromDisk(error: unknown): unknown {
  if (LockgateError.isInstance(error) || !(error instanceof Error)) return error;
  const [code, hint] = CODES[codeOf(error)] ?? ["STORE_UNAVAILABLE", "check the disk that holds the store"];
  return new LockgateError(code, `the file store failed: ${error.message}`, { hint, cause: error });
}

/** A name for a temporary file or folder that no other process uses. */
export const unique = (what: string): string => `${what}.${process.pid}.${randomBytes(8).toString("hex")}`;
