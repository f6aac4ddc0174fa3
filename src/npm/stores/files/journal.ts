// The records of one user in a folder: a numbered journal of batches that several processes may extend.
//
//   <folder>/<generation>/base   all records at the start of the generation (the first generation has no base)
//   <folder>/<generation>/<n>    the batches since then: 1, 2, 3, …; the last may name the next generation
//
// To publish a batch, a process writes a temporary file and links it to the next number. If the number is taken, the process
// reads that batch, checks the expected revision again and tries the number after it. No file is ever changed and no name is
// used twice. A process that was suspended for long cannot write into an old generation: the folder of that generation has
// been renamed, so the link fails.
//
// So a missing number is a lost batch, and a missing folder is a lost user. `last.<n>` is a second name of the newest batch, and
// `<user>.has` beside the folder says that there is one. Each batch names what the batch before it changed. So if a batch is
// lost or damaged, only the sessions that it changed are refused.

import * as fs from "node:fs/promises";
import path from "node:path";

import { lowerBound, upperBound } from "../../values/sorted-keys.js";
import type { Batch, StoredRecord } from "../../types/store.js";
import { changedBy, decode, encodeBatch, encodeSeal, mentionedIn } from "./batch-file.js";
import type { Contents, PreviousFile } from "./batch-file.js";
import { Damage } from "./damage.js";
import { codeOf, isFolder, namesIn, numbersIn, openToRead, readWhole, syncFolder, undefinedIfMissing, unique, writeNew } from "./disk.js";
import { UserMark } from "./user-mark.js";
import { lost, lostUser, readLine, readValues, unreadable, writeBase } from "./values.js";
import type { RecordLocation } from "./values.js";
import type { ListedRecord, Page } from "../keys.js";

/** When a new generation begins: see `#trimIfDue`. */
const TRIM = { batches: 256, ofKeys: 8, ofBytes: 8, always: 4096, staleMs: 3_600_000 };

/** The records of one user in a folder: a base file, and one file for each batch since then. Other processes may add batches. */
export class Journal {
  readonly #folder: string;
  #generation: number | undefined;
  #last = 0;
  /** The highest number that has been seen in the generation. */
  #highest = 0;
  /** The checksum of the last batch and what it changed; undefined if that is unknown. */
  #previous: PreviousFile | undefined;
  #damage = new Damage();
  /** Whether the folder was there. Then it is lost if it is gone. */
  #wasThere = false;
  readonly #mark: UserMark;
  #bytes = { base: 0, batches: 0 };
  #records = new Map<string, RecordLocation>();
  #keys: string[] = [];
  #queue: Promise<unknown> = Promise.resolve();
  #trimming: Promise<void> | undefined;
  /** Records were removed by prefix, and old files still contain them. */
  #mustTrim = false;
  readonly #onApplied: ((contents: Contents, isBase: boolean) => void) | undefined;

  /** `onApplied` is called with the contents of each file that is read or published. */
  constructor(folder: string, onApplied?: (contents: Contents, isBase: boolean) => void) {
    this.#folder = folder;
    this.#mark = new UserMark(folder);
    this.#onApplied = onApplied;
  }

  /** The record under each key; null where there is none. */
  async get(keys: readonly string[]): Promise<(StoredRecord | null)[]> {
    return this.#reading(() => {
      this.#damage.refuse(keys);
      return keys.map((key) => this.#records.get(key));
    });
  }

  /** The records whose keys begin with `prefix`, in key order, one page. */
  async list(prefix: string, page: Page): Promise<ListedRecord[]> {
    let chosen: readonly string[] = [];
    const found = await this.#reading(() => {
      if (page.keysOnly) this.#damage.refuse([prefix]);
      else this.#damage.refuseList(prefix);
      const start = Math.max(lowerBound(this.#keys, prefix), page.after === undefined ? 0 : upperBound(this.#keys, page.after));
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

  /** Applies the batch, or answers "conflict" if its condition does not hold. */
  async commit(batch: Batch): Promise<"ok" | "conflict"> {
    return this.#serially(async () => {
      let bytes: Buffer;
      do {
        await this.#refresh();
        const { expect, removePrefix = [] } = batch;
        const keys = [...batch.put.map(({ key }) => key), ...batch.remove, ...(expect ? [expect.key] : [])];
        this.#damage.refuse(keys.filter((key) => !removePrefix.some((prefix) => key.startsWith(prefix))));
        bytes = encodeBatch(batch, this.#previous);
        if (expect && (this.#records.get(expect.key)?.revision ?? null) !== expect.revision) return "conflict";
      } while (!(await this.#publish(bytes)));
      this.#trimIfDue(batch);
      return "ok";
    });
  }

  /** Resolves when no background work is left. */
  async idle(): Promise<void> {
    await this.#queue;
    while (this.#trimming !== undefined) await this.#trimming;
  }

  /** Whether nothing is in progress, so that the journal can be dropped. */
  get isIdle(): boolean {
    return this.#trimming === undefined;
  }

  /** Runs one piece of work at a time within this process. */
  #serially<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  /** Reads the records that `choose` returns after the journal was read to its end. */
  async #reading(choose: () => readonly (RecordLocation | undefined)[], keysOnly = false): Promise<(StoredRecord | null)[]> {
    for (;;) {
      const { locations, folder } = await this.#serially(async () => {
        await this.#refresh();
        return { locations: choose(), folder: this.#path() };
      });
      if (keysOnly) return locations.map((each) => each && { value: new Uint8Array(), revision: each.revision }) as (StoredRecord | null)[];
      const values = await readValues(folder, locations);
      // If a file is missing, another process has begun a new generation: read again from there. Otherwise the file is lost.
      if (values === undefined && (await isFolder(folder))) throw lost(folder);
      if (values !== undefined) return locations.map((each, index) => (each ? { value: values[index]!, revision: each.revision } : null));
    }
  }

  #path(...names: string[]): string {
    return path.join(this.#folder, String(this.#generation), ...names);
  }

  /** Reads the batches that were published since the last time, by this process or others. */
  async #refresh(): Promise<void> {
    if (this.#generation === undefined) await this.#open();
    while (this.#generation !== undefined) {
      const name = String(this.#last + 1);
      const bytes = (await readWhole(this.#path(name))) ?? (await this.#restored(name));
      if (bytes !== undefined) await this.#applyFile(name, bytes);
      // The folder is checked after the file. If the folder exists now, it existed before, and the file really did not exist.
      else if (!(await isFolder(this.#path()))) await this.#open();
      else if (this.#last + 1 < this.#highest) this.#skipLost();
      // Another process may have published later batches since the folder was listed.
      else if (await undefinedIfMissing(() => fs.lstat(this.#path(String(this.#last + 2))))) this.#highest = this.#last + 2;
      else return;
    }
  }

  /** The newest batch under its second name, if the first was removed. */
  async #restored(name: string): Promise<Buffer | undefined> {
    const second = this.#path(`last.${name}`);
    const bytes = await readWhole(second);
    if (bytes !== undefined) await fs.link(second, this.#path(name)).catch(() => {});
    return bytes;
  }

  /** Goes on behind a lost batch, which changed this. */
  #skipLost(changed?: readonly string[]): void {
    this.#last += 1;
    this.#damage.follows = this.#previous?.[0];
    this.#previous = undefined;
    this.#damage.lose(lost(this.#path(String(this.#last))), changed);
  }

  async #applyFile(name: string, bytes: Buffer): Promise<void> {
    const contents = decode(bytes, bytes.length);
    if (contents === undefined) {
      const changed = mentionedIn(bytes);
      this.#damage.explain(undefined);
      this.#damage.add(changed.length > 0 ? changed : undefined, unreadable(this.#path(name)));
      this.#previous = undefined;
      this.#last += 1;
      return;
    }
    const { next, before } = contents;
    if (this.#previous !== undefined && before !== undefined && before[0] !== this.#previous[0]) {
      this.#damage.add(changedBy(contents), unreadable(this.#path(name)));
      return this.#skipLost(this.#damage.misplace(before, changedBy(contents), this.#previous[0]));
    }
    if (before !== undefined && this.#damage.follows === before[0]) {
      // It belongs into the place before, where a batch is missing.
      this.#damage.explain(changedBy(contents));
      return this.#skipLost(this.#damage.misplace(before, changedBy(contents), contents.check));
    }
    if (next !== undefined && (await this.#openNext(next))) return;
    if (next === undefined) this.#damage.explain(before?.[1]);
    this.#apply(contents, name);
    this.#damage.follows = undefined;
    this.#previous = [contents.check, changedBy(contents)];
    this.#last += 1;
    this.#bytes.batches += bytes.length;
  }

  /** Opens the next generation. False if its folder has been removed: then the current generation continues. */
  async #openNext(next: string): Promise<boolean> {
    const current = this.#generation!;
    const following = path.join(this.#folder, String(current + 1));
    await undefinedIfMissing(() => fs.rename(path.join(this.#folder, next), following));
    await syncFolder(this.#folder);
    if (!(await isFolder(following)) && (await this.#newest()) === current) return false;
    await this.#open();
    return true;
  }

  /** Opens the newest generation. Without one, nothing is stored. */
  async #open(): Promise<void> {
    for (let attempt = 0; attempt < 100; attempt++) {
      this.#records = new Map();
      this.#keys = [];
      this.#last = 0;
      this.#previous = undefined;
      this.#damage = new Damage();
      this.#bytes = { base: 0, batches: 0 };
      this.#generation = undefined;
      if (!(await isFolder(path.dirname(this.#folder))) || !(await isFolder(this.#folder))) {
        if (this.#wasThere || (await this.#mark.exists())) throw lostUser(this.#folder, this.#mark.file);
        return;
      }
      this.#wasThere = true;
      const newest = await this.#newest();
      // Between the two checks of the folder, another process may have begun a new generation.
      if (newest === undefined || !(await isFolder(path.join(this.#folder, String(newest))))) continue;
      this.#generation = newest;
      // The first batch of a later generation follows a batch of the generation before.
      if (newest === 0) this.#previous = ["", []];
      this.#highest = (await numbersIn(this.#path())).reduce((most, number) => Math.max(most, number), 0);
      if (newest === 0 || (await this.#readBase())) return;
    }
    this.#generation = undefined;
    throw unreadable(this.#folder);
  }

  async #newest(): Promise<number | undefined> {
    return (await numbersIn(this.#folder)).sort((one, other) => one - other).at(-1);
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

  #apply(contents: Contents, file: string): void {
    const { put, remove, removePrefix } = contents;
    for (const prefix of removePrefix) {
      this.#damage.forget(prefix);
      const start = lowerBound(this.#keys, prefix);
      let end = start;
      while (end < this.#keys.length && this.#keys[end]!.startsWith(prefix)) this.#records.delete(this.#keys[end++]!);
      this.#keys.splice(start, end - start);
    }
    for (const key of remove) {
      if (this.#records.delete(key)) this.#keys.splice(lowerBound(this.#keys, key), 1);
    }
    for (const each of put) {
      if (!this.#records.has(each.key)) {
        if (this.#keys.length === 0 || this.#keys.at(-1)! < each.key) this.#keys.push(each.key);
        else this.#keys.splice(lowerBound(this.#keys, each.key), 0, each.key);
      }
      this.#records.set(each.key, { ...each, file });
    }
    this.#onApplied?.(contents, file === "base");
  }

  /** Makes the folder with its first generation, by renaming a prepared folder: both names appear at once, and are never made again. */
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

  /** Publishes a file under the next number. False if another process was first. */
  async #publish(bytes: Buffer): Promise<boolean> {
    if (this.#generation === undefined) {
      await this.#create();
      return false;
    }
    await this.#mark.make();
    const temporary = this.#path(unique("_batch"));
    const number = this.#last + 1;
    try {
      await writeNew(temporary, (handle) => handle.writeFile(bytes));
      await fs.link(temporary, this.#path(String(number)));
      await fs.link(temporary, this.#path(`last.${number}`)).catch(() => {});
      await fs.unlink(this.#path(`last.${number - 1}`)).catch(() => {});
    } catch (error) {
      // ENOENT: the folder is gone, because a new generation has begun.
      if (codeOf(error) === "EEXIST" || codeOf(error) === "ENOENT") return false;
      throw error;
    } finally {
      await fs.unlink(temporary).catch(() => {});
    }
    await undefinedIfMissing(() => syncFolder(this.#path()));
    await this.#applyFile(String(number), bytes);
    return true;
  }

  #trimIfDue(batch: Batch): void {
    const { base, batches } = this.#bytes;
    const isLong = this.#last > TRIM.batches && this.#last > this.#keys.length / TRIM.ofKeys;
    const isDue = (isLong && batches > base / TRIM.ofBytes) || this.#last > TRIM.always;
    // A deleted user or session must not stay in old files.
    if ((batch.removePrefix?.length ?? 0) > 0) this.#mustTrim = true;
    if ((isDue || this.#mustTrim) && this.#trimming === undefined) this.#beginTrim();
  }

  /** Trims in the background. A failure leaves the journal as it is, and the next commit tries again. */
  #beginTrim(): void {
    const hadToTrim = this.#mustTrim;
    this.#mustTrim = false;
    const ended = (hasFailed: boolean): void => {
      this.#trimming = undefined;
      // Records may have been removed while the trim ran.
      if (this.#mustTrim && !hasFailed) this.#beginTrim();
      if (hasFailed && hadToTrim) this.#mustTrim = true;
    };
    this.#trimming = this.#trim().then(
      () => ended(false),
      () => ended(true),
    );
  }

  /** Begins a new generation with all current records, and removes the old one. */
  async #trim(): Promise<void> {
    // Without this, the new generation could start with records that were just removed.
    await this.#serially(() => this.#refresh());
    // A new generation would be without what is lost, and nobody could notice it.
    if (this.#damage.error !== undefined) throw this.#damage.error;
    const began = { generation: this.#generation, last: this.#last, folder: this.#path() };
    const locations = this.#keys.map((key) => this.#records.get(key)!);
    const name = unique("_new");
    const fresh = path.join(this.#folder, name);
    await fs.mkdir(fresh, { mode: 0o700 });
    try {
      await writeNew(path.join(fresh, "base"), (handle) => writeBase(handle, began.folder, locations));
      const isSealed = await this.#serially(() => this.#seal(began, name));
      if (isSealed) await this.#removeOld(began.generation!);
    } finally {
      await this.#remove(name);
    }
  }

  /** Ends the generation, after linking the batches that came since the trim began into the new one. */
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

  /** Removes an ended generation, and temporary files that crashed processes have left. */
  async #removeOld(generation: number): Promise<void> {
    for (const name of await namesIn(this.#folder)) {
      const changed = (await undefinedIfMissing(() => fs.lstat(path.join(this.#folder, name))))?.mtimeMs ?? Infinity;
      const isLeft = /^\d+$/.test(name) ? Number(name) <= generation : Date.now() - changed > TRIM.staleMs;
      if (isLeft) await this.#remove(name);
    }
  }

  /** Removes a folder. It is renamed first, so no process finds a half-removed folder under the old name. */
  async #remove(name: string): Promise<void> {
    const away = path.join(this.#folder, unique("_old"));
    await undefinedIfMissing(() => fs.rename(path.join(this.#folder, name), away));
    await fs.rm(away, { recursive: true, force: true });
  }
}
