// The records of one user in a folder: a numbered journal of batches, of which several processes may write the next.
//
//   <folder>/<generation>/base   all records when the generation began (the first has none)
//   <folder>/<generation>/<n>    the batches since, 1, 2, 3, …; the last may say where the next generation is
//
// A batch is published by linking its finished file to the next number: whoever finds the number taken reads what is
// there and checks again. Nothing is ever changed in place, and no name is used twice, so a process that was away for
// long cannot write into the past: its generation's folder has another name by then, and the link fails.

import { randomBytes } from "node:crypto";
import * as fs from "node:fs/promises";
import path from "node:path";

import { LockgateError } from "../errors.js";
import { place, placeAfter } from "../sorted.js";
import type { Batch, StoredRecord } from "../store-types.js";
import { checkOf, decode, encodeBatch, encodeHead, encodeSeal } from "./batch-file.js";
import type { Contents, Put } from "./batch-file.js";
import { absent, codeOf, isFolder, namesIn, openToRead, readWhole, syncFolder, writeNew } from "./disk.js";
import type { Listed, Page } from "./keys.js";

/** A record, and the file of the generation that has its bytes. */
interface Place extends Put {
  readonly file: string;
}

/** A generation that is read further than this, and than a part of what it began with, is followed by a new one. */
const TRIM = { batches: 256, ofKeys: 8, ofBytes: 8, always: 4096 };
const STALE_MS = 3_600_000;

export class Journal {
  readonly #folder: string;
  #generation: number | undefined;
  #last = 0;
  #bytes = { base: 0, batches: 0 };
  #records = new Map<string, Place>();
  #keys: string[] = [];
  #turn: Promise<unknown> = Promise.resolve();
  #trimming: Promise<void> | undefined;
  /** Old files still hold what somebody wanted removed. */
  #owesTrim = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async get(keys: readonly string[]): Promise<(StoredRecord | null)[]> {
    return this.#reading(() => keys.map((key) => this.#records.get(key)));
  }

  async list(prefix: string, page: Page): Promise<Listed[]> {
    let chosen: readonly string[] = [];
    const found = await this.#reading(() => {
      const start = Math.max(place(this.#keys, prefix), page.after === undefined ? 0 : placeAfter(this.#keys, page.after));
      const keys: string[] = [];
      for (let index = start; index < this.#keys.length && keys.length < (page.limit ?? Infinity); index++) {
        const key = this.#keys[index]!;
        if (!key.startsWith(prefix)) break;
        keys.push(key);
      }
      chosen = keys;
      return keys.map((key) => this.#records.get(key));
    }, page.keysOnly);
    return found.map((record, index) => ({ key: chosen[index]!, ...record! }));
  }

  async commit(batch: Batch): Promise<"ok" | "conflict"> {
    return this.#alone(async () => {
      const bytes = encodeBatch(batch);
      do {
        await this.#refresh();
        const { expect } = batch;
        if (expect && (this.#records.get(expect.key)?.revision ?? null) !== expect.revision) return "conflict";
      } while (!(await this.#publish(bytes)));
      this.#trimIfDue(batch);
      return "ok";
    });
  }

  /** Resolves when nothing is done behind anybody's back any more. */
  async idle(): Promise<void> {
    await this.#turn;
    while (this.#trimming !== undefined) await this.#trimming;
  }

  get isIdle(): boolean {
    return this.#trimming === undefined;
  }

  /** One after the other within this process; the answer of the one before is nobody else's. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }

  /** Reads the records that `choose` finds in what is stored now. */
  async #reading(choose: () => readonly (Place | undefined)[], keysOnly = false): Promise<(StoredRecord | null)[]> {
    for (;;) {
      const { places, folder } = await this.#alone(async () => {
        await this.#refresh();
        return { places: choose(), folder: this.#path() };
      });
      if (keysOnly) return places.map((each) => each && { value: new Uint8Array(), revision: each.revision }) as (StoredRecord | null)[];
      const values = await readValues(folder, places);
      // A file that is gone was trimmed meanwhile: the record is in the next generation.
      if (values !== undefined) return places.map((each, index) => (each ? { value: values[index]!, revision: each.revision } : null));
    }
  }

  #path(...names: string[]): string {
    return path.join(this.#folder, String(this.#generation), ...names);
  }

  /** Takes in what other processes, or this one, have published. */
  async #refresh(): Promise<void> {
    if (this.#generation === undefined) await this.#open();
    while (this.#generation !== undefined) {
      const name = String(this.#last + 1);
      const bytes = await readWhole(this.#path(name));
      if (bytes !== undefined) await this.#follow(name, bytes);
      // The folder is looked for after the file: if it is there now, it was there then, and the file was not.
      else if (await isFolder(this.#path())) return;
      else await this.#open();
    }
  }

  async #follow(name: string, bytes: Buffer): Promise<void> {
    const contents = decode(bytes, bytes.length);
    if (contents === undefined) throw unreadable(this.#path(name));
    const { next } = contents;
    if (next !== undefined && (await this.#moveOn(next))) return;
    this.#apply(contents, name);
    this.#last += 1;
    this.#bytes.batches += bytes.length;
  }

  /** Goes on in the next generation. False if its folder was taken away again: then the journal goes on where it is. */
  async #moveOn(next: string): Promise<boolean> {
    const current = this.#generation!;
    const following = path.join(this.#folder, String(current + 1));
    await absent(() => fs.rename(path.join(this.#folder, next), following));
    await syncFolder(this.#folder);
    if (!(await isFolder(following)) && (await this.#highest()) === current) return false;
    await this.#open();
    return true;
  }

  /** Begins with the newest generation; without one there is nothing stored. */
  async #open(): Promise<void> {
    for (let attempt = 0; attempt < 100; attempt++) {
      this.#records = new Map();
      this.#keys = [];
      this.#last = 0;
      this.#bytes = { base: 0, batches: 0 };
      this.#generation = undefined;
      if (!(await isFolder(path.dirname(this.#folder))) || !(await isFolder(this.#folder))) return;
      const newest = await this.#highest();
      // Between two looks at the folder a generation may have been followed by the next.
      if (newest === undefined || !(await isFolder(path.join(this.#folder, String(newest))))) continue;
      this.#generation = newest;
      if (newest === 0 || (await this.#readBase())) return;
    }
    this.#generation = undefined;
    throw unreadable(this.#folder);
  }

  async #highest(): Promise<number | undefined> {
    const numbers = (await namesIn(this.#folder)).filter((name) => /^\d+$/.test(name)).map(Number);
    return numbers.length === 0 ? undefined : Math.max(...numbers);
  }

  async #readBase(): Promise<boolean> {
    const file = this.#path("base");
    const handle = await openToRead(file);
    if (handle === undefined) return false;
    try {
      const { size } = await handle.stat();
      const contents = decode(await readLine(handle), size);
      if (contents === undefined) throw unreadable(file);
      this.#apply(contents, "base");
      this.#bytes.base = size;
      return true;
    } finally {
      await handle.close();
    }
  }

  #apply({ put, remove, removePrefix }: Contents, file: string): void {
    for (const prefix of removePrefix) {
      const start = place(this.#keys, prefix);
      let end = start;
      while (end < this.#keys.length && this.#keys[end]!.startsWith(prefix)) this.#records.delete(this.#keys[end++]!);
      this.#keys.splice(start, end - start);
    }
    for (const key of remove) {
      if (this.#records.delete(key)) this.#keys.splice(place(this.#keys, key), 1);
    }
    for (const each of put) {
      if (!this.#records.has(each.key)) {
        if (this.#keys.length === 0 || this.#keys.at(-1)! < each.key) this.#keys.push(each.key);
        else this.#keys.splice(place(this.#keys, each.key), 0, each.key);
      }
      this.#records.set(each.key, { ...each, file });
    }
  }

  /** Makes the folder with its first generation in it, both at once: neither name is ever made again. */
  async #create(): Promise<void> {
    const parent = path.dirname(this.#folder);
    await fs.mkdir(parent, { recursive: true, mode: 0o700 });
    const fresh = path.join(parent, unique("_new"));
    await fs.mkdir(path.join(fresh, "0"), { recursive: true, mode: 0o700 });
    try {
      await syncFolder(fresh);
      await fs.rename(fresh, this.#folder);
      await syncFolder(parent);
      await syncFolder(path.dirname(parent));
    } catch (error) {
      await fs.rm(fresh, { recursive: true, force: true });
      if (!["ENOTEMPTY", "EEXIST", "EPERM"].includes(codeOf(error)) || !(await isFolder(this.#folder))) throw error;
    }
  }

  /** Publishes a file as the next of the journal. False if another was first. */
  async #publish(bytes: Buffer): Promise<boolean> {
    if (this.#generation === undefined) {
      await this.#create();
      return false;
    }
    const temporary = this.#path(unique("_batch"));
    try {
      await writeNew(temporary, (handle) => handle.writeFile(bytes));
      await fs.link(temporary, this.#path(String(this.#last + 1)));
    } catch (error) {
      // No such folder: the generation has been followed by another.
      if (codeOf(error) === "EEXIST" || codeOf(error) === "ENOENT") return false;
      throw error;
    } finally {
      await fs.unlink(temporary).catch(() => {});
    }
    await absent(() => syncFolder(this.#path()));
    await this.#follow(String(this.#last + 1), bytes);
    return true;
  }

  #trimIfDue(batch: Batch): void {
    const { base, batches } = this.#bytes;
    const isLong = this.#last > TRIM.batches && this.#last > this.#keys.length / TRIM.ofKeys;
    const isDue = (isLong && batches > base / TRIM.ofBytes) || this.#last > TRIM.always;
    // What somebody wanted removed is not kept in old files.
    if ((batch.removePrefix?.length ?? 0) > 0) this.#owesTrim = true;
    if ((isDue || this.#owesTrim) && this.#trimming === undefined) this.#beginTrim();
  }

  /** It costs nobody an answer: a failure leaves the journal as it is, and the next commit tries again. */
  #beginTrim(): void {
    const owed = this.#owesTrim;
    this.#owesTrim = false;
    const ended = (hasFailed: boolean): void => {
      this.#trimming = undefined;
      // Something may have been removed while it ran.
      if (this.#owesTrim && !hasFailed) this.#beginTrim();
      if (hasFailed && owed) this.#owesTrim = true;
    };
    this.#trimming = this.#trim().then(
      () => ended(false),
      () => ended(true),
    );
  }

  /** Begins a new generation with all records there are, and removes the old one. */
  async #trim(): Promise<void> {
    // What this process has published it has not taken in yet: the new generation would begin with what was just removed.
    await this.#alone(() => this.#refresh());
    const began = { generation: this.#generation, last: this.#last, folder: this.#path() };
    const places = this.#keys.map((key) => this.#records.get(key)!);
    const name = unique("_new");
    const fresh = path.join(this.#folder, name);
    await fs.mkdir(fresh, { mode: 0o700 });
    try {
      await writeNew(path.join(fresh, "base"), (handle) => writeBase(handle, began.folder, places));
      const isSealed = await this.#alone(() => this.#seal(began, name));
      if (isSealed) await this.#removeOld(began.generation!);
    } finally {
      await this.#remove(name);
    }
  }

  /** Ends the generation, after taking over the batches that came since its records were written down. */
  async #seal(began: { readonly generation: number | undefined; readonly last: number }, name: string): Promise<boolean> {
    const fresh = path.join(this.#folder, name);
    for (let taken = began.last; ; ) {
      await this.#refresh();
      if (this.#generation !== began.generation) return false;
      for (; taken < this.#last; taken++) await fs.link(this.#path(String(taken + 1)), path.join(fresh, String(taken + 1 - began.last)));
      await syncFolder(fresh);
      await syncFolder(this.#folder);
      if (await this.#publish(encodeSeal(name))) return this.#generation !== began.generation;
    }
  }

  /** Removes a generation that has been followed by another, and what crashed processes have left. */
  async #removeOld(generation: number): Promise<void> {
    for (const name of await namesIn(this.#folder)) {
      const changed = (await absent(() => fs.lstat(path.join(this.#folder, name))))?.mtimeMs ?? Infinity;
      const isLeft = /^\d+$/.test(name) ? Number(name) <= generation : Date.now() - changed > STALE_MS;
      if (isLeft) await this.#remove(name);
    }
  }

  /** Removes a folder. It gets another name first: nobody ever finds half of it under the old one. */
  async #remove(name: string): Promise<void> {
    const away = path.join(this.#folder, unique("_old"));
    await absent(() => fs.rename(path.join(this.#folder, name), away));
    await fs.rm(away, { recursive: true, force: true });
  }
}

const unique = (what: string): string => `${what}.${process.pid}.${randomBytes(8).toString("hex")}`;

/** The first line of a file, with what was read beyond it. */
async function readLine(handle: fs.FileHandle): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(65_536), 0, 65_536, at);
    const piece = buffer.subarray(0, bytesRead);
    pieces.push(piece);
    at += bytesRead;
    if (bytesRead === 0 || piece.includes(10)) return Buffer.concat(pieces);
  }
}

/** Writes all records to a file, a few at a time. */
async function writeBase(handle: fs.FileHandle, folder: string, places: readonly Place[]): Promise<void> {
  await handle.writeFile(encodeHead(places));
  for (let at = 0; at < places.length; at += 100) {
    const values = await readValues(folder, places.slice(at, at + 100));
    if (values === undefined) throw new Error("the generation is gone");
    await handle.writeFile(Buffer.concat(values as Uint8Array[]));
  }
}

/** The bytes of each record; undefined if a file is gone. Each file is opened once, one at a time. */
async function readValues(folder: string, places: readonly (Place | undefined)[]): Promise<(Uint8Array | undefined)[] | undefined> {
  const values: (Uint8Array | undefined)[] = places.map(() => undefined);
  const byFile = new Map<string, number[]>();
  places.forEach((each, index) => {
    if (each) byFile.set(each.file, [...(byFile.get(each.file) ?? []), index]);
  });
  for (const [name, indexes] of byFile) {
    const file = path.join(folder, name);
    const handle = await openToRead(file);
    if (handle === undefined) return undefined;
    try {
      for (const index of indexes) values[index] = await readValue(handle, file, places[index]!);
    } finally {
      await handle.close();
    }
  }
  return values;
}

async function readValue(handle: fs.FileHandle, file: string, { offset, length, check }: Place): Promise<Uint8Array> {
  const value = new Uint8Array(length);
  const { bytesRead } = length === 0 ? { bytesRead: 0 } : await handle.read(value, 0, length, offset);
  if (bytesRead !== length || checkOf(value) !== check) throw unreadable(file);
  return value;
}

function unreadable(file: string): LockgateError {
  return new LockgateError("STORE_CORRUPT", `${file} is not as it was written`, {
    hint: "its bytes are kept: put the file back from a copy, or move this user's folder away",
  });
}
