// The format of the file store's files: one line of JSON about the contents, then the bytes of the records.

import { createHash } from "node:crypto";

import type { Batch } from "../../types/store.js";

/** One record in a file: the position of its bytes, and their checksum. */
export interface FileRecord {
  /** The key of the record. */
  readonly key: string;
  /** The revision of the batch that put the record. */
  readonly revision: string;
  /** Where its bytes begin in the file. */
  readonly offset: number;
  /** The number of its bytes. */
  readonly length: number;
  /** The checksum of its bytes. */
  readonly check: string;
}

/** What a file contains: a batch, all records of a base file, or the name of the next generation. */
export interface Contents {
  /** The records in the file. */
  readonly put: readonly FileRecord[];
  /** The keys that the batch removed. */
  readonly remove: readonly string[];
  /** The prefixes whose keys the batch removed. */
  readonly removePrefix: readonly string[];
  /** The name of the next generation. Absent if the file does not end its generation. */
  readonly next?: string;
  /** The checksum of the file before this one, and what that file changed, as prefixes of keys. Absent if that is unknown. */
  readonly before?: PreviousFile;
  /** The checksum of this file's first line. */
  readonly check: string;
}

/** What a file says about the file before it: its checksum, "" if there is none, and what it changed. */
export type PreviousFile = readonly [check: string, changed: readonly string[]];

interface Head {
  readonly lockgate: 1;
  /** Key, revision, length and checksum of each record, in the order of their bytes. */
  readonly put: readonly (readonly [string, string, number, string])[];
  readonly remove?: readonly string[];
  readonly removePrefix?: readonly string[];
  readonly next?: string;
  readonly before?: PreviousFile;
}

/** The bytes of a file with one batch. `before` is about the file before it. */
export function encodeBatch(batch: Batch, before: PreviousFile | undefined): Buffer {
  const put = batch.put.map(({ key, value }) => [key, batch.revision, value.length, checksum(value)] as const);
  const head = headLine({ lockgate: 1, put, remove: batch.remove, ...(batch.removePrefix && { removePrefix: batch.removePrefix }), ...(before && { before }) });
  return Buffer.concat([head, ...batch.put.map(({ value }) => value)]);
}

/** The first line of a file with these records. The caller writes the bytes of the records after it, in the same order. */
export function encodeHead(records: readonly FileRecord[]): Uint8Array {
  return headLine({ lockgate: 1, put: records.map(({ key, revision, length, check }) => [key, revision, length, check] as const) });
}

/** The bytes of a file that ends a generation and names the next one. */
export function encodeSeal(next: string): Buffer {
  return headLine({ lockgate: 1, put: [], next });
}

function headLine(head: Head): Buffer {
  const text = JSON.stringify(head);
  return Buffer.from(`${checksum(Buffer.from(text))} ${text}\n`);
}

/** Reads the head of a file; undefined if the bytes have changed since they were written. `size` is the size of the whole file. */
export function decode(bytes: Buffer, size: number): Contents | undefined {
  const end = bytes.indexOf(10);
  const space = bytes.indexOf(32);
  if (end < 0 || space < 0 || space > end) return undefined;
  const text = bytes.subarray(space + 1, end);
  const check = checksum(text);
  if (bytes.toString("latin1", 0, space) !== check) return undefined;
  const head = JSON.parse(text.toString()) as Head;
  let offset = end + 1;
  const put = head.put.map(([key, revision, length, check]) => {
    const record = { key, revision, offset, length, check };
    offset += length;
    return record;
  });
  if (offset !== size) return undefined;
  return { check, put, remove: head.remove ?? [], removePrefix: head.removePrefix ?? [], ...(head.next !== undefined && { next: head.next }), ...(head.before && { before: head.before }) };
}

/** What a file changed, as prefixes of keys: the sessions, and for other records their kind. */
export function changedBy({ put, remove, removePrefix }: Pick<Contents, "put" | "remove" | "removePrefix">): string[] {
  const keys = [...put.map(({ key }) => key), ...remove, ...removePrefix];
  return [...new Set(keys.map(prefixOf))];
}

/** The same for a file that cannot be read: the keys that its bytes mention. Each session is mentioned several times. What the file
 * before it changed is mentioned too, but only as prefixes. */
export function mentionedIn(bytes: Buffer): string[] {
  const keys = bytes.toString("latin1").matchAll(/[a-z0-9.-]+\/[a-z0-9.-]+\/(?:slot|file|task)\/[a-z0-9.-]+\/(?=[a-z0-9])/g);
  return [...new Set([...keys].map(([key]) => prefixOf(key)))];
}

/** A line of the list, or a segment of the search index, can be made again from its session. So only what else was changed counts. */
function prefixOf(key: string): string {
  const [agent, user, kind, session] = key.split("/");
  if (kind === undefined || kind === "" || user === undefined) return `${agent}/${user ?? ""}`;
  return kind === "slot" ? `${agent}/${user}/slot/${session}/` : `${agent}/${user}/${kind}/`;
}

/** Whether a lost change of records below this prefix is a loss. */
export const canBeMadeAgain = (prefix: string): boolean => /\/(?:index|search)\/$/.test(prefix);

/** A short checksum. It detects damage, not manipulation. */
export function checksum(value: Uint8Array): string {
  return createHash("sha256").update(value).digest("base64url").slice(0, 16);
}
