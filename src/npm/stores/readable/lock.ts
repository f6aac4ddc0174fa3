// A lock that processes of one machine take in turn: a file that exists while one of them works.
//
// Nothing depends on the lock alone: a process that was suspended while it held the lock may still write one piece. The next
// writer compares the file with what it should be, and makes it anew.

import { randomBytes } from "node:crypto";
import * as fs from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";

import { codeOf, namesIn, undefinedIfMissing } from "../files/disk.js";

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
    if (gone !== undefined) await remove(file, gone, besides(file, owner));
    else if (Date.now() > until) return { did: "nothing", why: "busy" };
    else await delay(1 + Math.random() * 5);
  }
  try {
    return { did: "work", value: await work() };
  } finally {
    if ((await ownerOf(file)) === owner) await undefinedIfMissing(() => fs.unlink(file));
  }
}

/** Removes the files beside a lock that killed processes have left. */
export async function removeLeftovers(file: string): Promise<void> {
  const beginning = `${path.basename(file)}.`;
  for (const name of await namesIn(path.dirname(file))) {
    if (!name.startsWith(beginning)) continue;
    const leftover = path.join(path.dirname(file), name);
    const since = (await undefinedIfMissing(() => fs.lstat(leftover)))?.mtimeMs;
    const pid = Number(name.slice(beginning.length).split(".")[0]);
    if (since !== undefined && isGone(pid, since)) await undefinedIfMissing(() => fs.unlink(leftover));
  }
}

/** A name beside the lock for one attempt to take or remove it. It tells the process, because a killed process may leave the file empty. */
const besides = (file: string, owner: string): string => `${file}.${process.pid}.${owner.slice(-16)}`;

/** Links a prepared file to the name of the lock, so that nobody reads a lock without its owner. */
async function take(file: string, owner: string): Promise<"taken" | "busy" | "no folder"> {
  const prepared = besides(file, owner);
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
    // A process of another container, where ours seems to be gone, may have removed the prepared file.
    if (codeOf(error) === "EEXIST" || codeOf(error) === "ENOENT") return "busy";
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
  const [pid, host] = owner.split(" ");
  return Date.now() - since > STUCK_MS || (host === hostname() && isGone(Number(pid), since)) ? owner : undefined;
}

/** Whether the process of this machine that wrote a file is gone. */
function isGone(pid: number, since: number): boolean {
  // In a container, a restarted program often has the process id of the one before it.
  if (pid === process.pid) return since < Date.now() - process.uptime() * 1000;
  try {
    process.kill(pid, 0);
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
