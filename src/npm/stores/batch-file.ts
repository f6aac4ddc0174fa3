// The one format of files: a line that says what is in it, and the bytes of the records after it.

import { createHash } from "node:crypto";

import type { Batch } from "../store-types.js";

/** One record in a file: where its bytes are, and what they must be. */
export interface Put {
  readonly key: string;
  readonly revision: string;
  readonly offset: number;
  readonly length: number;
  readonly check: string;
}

/** What a file says: a batch, all records there were, or where the journal goes on. */
export interface Contents {
  readonly put: readonly Put[];
  readonly remove: readonly string[];
  readonly removePrefix: readonly string[];
  readonly next?: string;
}

interface Head {
  readonly lockgate: 1;
  /** Key, revision, length and checksum of each record, in the order of their bytes. */
  readonly put: readonly (readonly [string, string, number, string])[];
  readonly remove?: readonly string[];
  readonly removePrefix?: readonly string[];
  readonly next?: string;
}

/** The bytes of a batch's file. */
export function encodeBatch(batch: Batch): Buffer {
  const put = batch.put.map(({ key, value }) => [key, batch.revision, value.length, checkOf(value)] as const);
  const head = headLine({ lockgate: 1, put, remove: batch.remove, ...(batch.removePrefix && { removePrefix: batch.removePrefix }) });
  return Buffer.concat([head, ...batch.put.map(({ value }) => value)]);
}

/** The first line of a file that has all these records, whose bytes follow in the same order. */
export function encodeHead(puts: readonly Put[]): Uint8Array {
  return headLine({ lockgate: 1, put: puts.map(({ key, revision, length, check }) => [key, revision, length, check] as const) });
}

/** The bytes of a file that ends a journal. */
export function encodeSeal(next: string): Buffer {
  return headLine({ lockgate: 1, put: [], next });
}

function headLine(head: Head): Buffer {
  const text = JSON.stringify(head);
  return Buffer.from(`${checkOf(Buffer.from(text))} ${text}\n`);
}

/** Reads what a file says; undefined if its bytes are not as they were written. `size` is that of the whole file. */
export function decode(bytes: Buffer, size: number): Contents | undefined {
  const end = bytes.indexOf(10);
  const space = bytes.indexOf(32);
  if (end < 0 || space < 0 || space > end) return undefined;
  const text = bytes.subarray(space + 1, end);
  if (bytes.toString("latin1", 0, space) !== checkOf(text)) return undefined;
  const head = JSON.parse(text.toString()) as Head;
  let offset = end + 1;
  const put = head.put.map(([key, revision, length, check]) => {
    const record = { key, revision, offset, length, check };
    offset += length;
    return record;
  });
  if (offset !== size) return undefined;
  return { put, remove: head.remove ?? [], removePrefix: head.removePrefix ?? [], ...(head.next !== undefined && { next: head.next }) };
}

/** A short checksum: against bytes that changed by themselves, not against people. */
export function checkOf(value: Uint8Array): string {
  return createHash("sha256").update(value).digest("base64url").slice(0, 16);
}
