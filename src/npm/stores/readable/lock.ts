// A lock that processes of one machine take in turn: a file that exists while one of them works.
//
// Nothing depends on the lock alone: a process that was suspended while it held the lock may still write one piece. The next
// writer compares the file with what it should be, and makes it anew.

import { randomBytes } from "node:crypto";
import * as fs from "node:fs/promises";
import { hostname } from "node:os";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";

import { codeOf, undefinedIfMissing } from "../files/disk.js";

/** A lock is held for milliseconds. After this time it is taken over from a process that seems to live. */
const STUCK_MS = 30_000;

export type Locked<T> = { readonly did: "work"; readonly value: T } | { readonly did: "nothing"; readonly why: "busy" | "no folder" };

/** Runs `work` under the lock. Its folder must exist. Gives up after `patienceMs`. */
export async function underLock<T>(file: string, patienceMs: number, work: () => Promise<T>): Promise<Locked<T>> {
  const owner = `${process.pid} ${hostname()} ${randomBytes(8).toString("hex")}`;
  for (const until = Date.now() + patienceMs; ; ) {
    const taken = await take(file, owner);
    if (taken === "taken") break;
    if (taken === "no folder") return { did: "nothing", why: taken };
    const gone = await goneOwner(file);
    if (gone !== undefined) await remove(file, gone, `${file}.${owner.slice(-16)}`);
    else if (Date.now() > until) return { did: "nothing", why: "busy" };
    else await delay(1 + Math.random() * 5);
  }
  try {
    return { did: "work", value: await work() };
  } finally {
    if ((await ownerOf(file)) === owner) await undefinedIfMissing(() => fs.unlink(file));
  }
}

/** Links a prepared file to the name of the lock, so that nobody reads a lock without its owner. */
async function take(file: string, owner: string): Promise<"taken" | "busy" | "no folder"> {
  const prepared = `${file}.${owner.slice(-16)}`;
  try {
    await fs.writeFile(prepared, owner, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "no folder";
    throw error;
  }
  try {
    await fs.link(prepared, file);
    return "taken";
  } catch (error) {
    if (codeOf(error) === "EEXIST") return "busy";
    throw error;
  } finally {
    await undefinedIfMissing(() => fs.unlink(prepared));
  }
}

const ownerOf = (file: string): Promise<string | undefined> => undefinedIfMissing(() => fs.readFile(file, "utf8"));

/** Who holds the lock, if that process is gone as far as this process can tell. */
async function goneOwner(file: string): Promise<string | undefined> {
  const owner = await ownerOf(file);
  const since = (await undefinedIfMissing(() => fs.lstat(file)))?.mtimeMs;
  if (owner === undefined || since === undefined) return undefined;
  return Date.now() - since > STUCK_MS || isGone(owner, since) ? owner : undefined;
}

function isGone(owner: string, since: number): boolean {
  const [pid, host] = owner.split(" ");
  if (host !== hostname()) return false;
  // In a container, a restarted program often has the process id of the one before it.
  if (Number(pid) === process.pid) return since < Date.now() - process.uptime() * 1000;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
}

/** Removes the lock of a process that is gone. If another process was faster and has the lock now, it is put back. */
async function remove(file: string, gone: string, aside: string): Promise<void> {
  await undefinedIfMissing(() => fs.rename(file, aside));
  const moved = await ownerOf(aside);
  if (moved !== undefined && moved !== gone) await fs.link(aside, file).catch(() => {});
  await undefinedIfMissing(() => fs.unlink(aside));
}
