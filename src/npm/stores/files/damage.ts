// Which records of a journal cannot be read, because a batch that changed them is lost or damaged.

import type { LockgateError } from "../../errors.js";
import { canBeMadeAgain } from "./batch-file.js";
import type { PreviousFile } from "./batch-file.js";

/** Why records cannot be read, by the prefix of their keys. Records of other sessions can. */
export class Damage {
  readonly #errors = new Map<string, LockgateError>();
  #lost: LockgateError[] = [];
  /** The checksum of the batch before the one that was skipped last, if it is known. */
  follows: string | undefined;
  /** What batches changed that are in a wrong place, by the checksum of the batch before them. */
  readonly #misplaced = new Map<string, readonly string[]>();

  /** The first error, if there is one. */
  get error(): LockgateError | undefined {
    return this.#lost[0] ?? [...this.#errors.values()][0];
  }

  /** A batch is lost. If it is not known what it changed, the next one says it. */
  lose(error: LockgateError, changed: readonly string[] | undefined): void {
    if (changed === undefined) this.#lost.push(error);
    else this.add(changed, error);
  }

  /** Notes a batch in a wrong place. Answers what the batch changed that belongs there, if that was found in another place. */
  misplace([before]: PreviousFile, changed: readonly string[], previous: string): readonly string[] | undefined {
    this.#misplaced.set(before, changed);
    return this.#misplaced.get(previous);
  }

  /** The batch after a lost one says what that changed. It says nothing about two lost ones. */
  explain(before: readonly string[] | undefined): void {
    const [error] = this.#lost;
    if (error !== undefined) this.add(this.#lost.length === 1 ? before : undefined, error);
    this.#lost = [];
  }

  /** Records below these prefixes are damaged; without prefixes, any may be. */
  add(prefixes: readonly string[] | undefined, error: LockgateError): void {
    for (const prefix of prefixes ?? [""]) if (!canBeMadeAgain(prefix)) this.#errors.set(prefix, error);
  }

  /** These records were removed. */
  forget(removed: string): void {
    const isUser = /^[^/]+\/[^/]+\/$/.test(removed);
    if (isUser) this.#lost = [];
    for (const prefix of [...this.#errors.keys()]) if (isUser || (prefix !== "" && prefix.startsWith(removed))) this.#errors.delete(prefix);
  }

  /** Fails if one of these records is damaged. */
  refuse(keys: readonly string[]): void {
    if (this.#lost[0] !== undefined) throw this.#lost[0];
    for (const [prefix, error] of this.#errors) if (keys.some((key) => key.startsWith(prefix))) throw error;
  }

  /** Fails if the list of the records with a prefix is not whole. */
  refuseList(listed: string): void {
    this.refuse([listed]);
    for (const [prefix, error] of this.#errors) if (prefix.startsWith(listed)) throw error;
  }
}
