// A table in MySQL or MariaDB, through a client that the user made: one transaction a batch.
//
// Keys, revisions and values go over as bytes, in binary columns: no collation, character set, padding, pattern or
// quoting has a say in what is equal to what.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../store-types.js";
import { endOf } from "./keys.js";
import type { Page } from "./keys.js";
import { Connections } from "./sql-connection.js";
import type { Query, SqlClient } from "./sql-connection.js";
import { fromSql, numberOf } from "./sql-errors.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "cluster",
  durability: "disk",
  evictable: false,
  // Twice as much, in hexadecimal, is still below the smallest packet that servers are set to.
  maxValueBytes: 1_000_000,
};

const ATTEMPTS = 4;
const DUPLICATE = 1062;

/** A store in a table, which is made on first use. `client` is a connection or a pool of `mysql2/promise`. */
export function sqlStore(client: SqlClient, options: { readonly dialect: "mysql"; readonly table?: string }): Store {
  const { dialect, table = "lockgate" } = options ?? {};
  if (dialect !== "mysql") throw wrong(`there is no dialect ${JSON.stringify(dialect)}`, 'sqlStore(pool, { dialect: "mysql" })');
  if (typeof table !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(table)) {
    throw wrong("the table has no simple name", "letters, digits and _ only, at most 64");
  }
  const connections = new Connections(client);
  const name = `\`${table}\``;
  let prepared: Promise<number> | undefined;
  const prepare = (): Promise<number> => {
    prepared ??= connections.use((query) => makeTable(query, name)).catch((error: unknown) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };

  return {
    name: `MySQL table ${table}`,
    capabilities: CAPABILITIES,
    get: typed(async (keys: readonly string[]) => {
      if (keys.length === 0) return [];
      keys.forEach(checkKey);
      await prepare();
      const unique = [...new Set(keys)].map(bytes);
      const rows = await connections.use((query) => query(`SELECT k, revision, v FROM ${name} WHERE k IN (?)`, [unique]));
      const found = new Map(rowsOf(rows).map((row) => [row.key, row]));
      return keys.map((key) => copyOf(found.get(key)));
    }),
    list: typed(async (prefix: string, page: Page = {}) => {
      await prepare();
      const { text, values } = listing(name, prefix, page);
      return rowsOf(await connections.use((query) => query(text, values)));
    }),
    commit: typed(async (batch: Batch) => {
      [...batch.put.map(({ key }) => key), ...batch.remove].forEach(checkKey);
      if (batch.revision.length > 255) throw wrong("a revision is over 255 bytes", "use a shorter one", "INPUT_INVALID");
      const largest = await prepare();
      const statements = statementsOf(name, batch, largest);
      return patiently(() => connections.transaction((query) => apply(query, name, batch, statements)));
    }),
  };
}

/** Makes the table, and answers with how many bytes a statement may have. */
async function makeTable(query: Query, name: string): Promise<number> {
  await query(
    `CREATE TABLE IF NOT EXISTS ${name} (k VARBINARY(512) NOT NULL PRIMARY KEY, revision VARBINARY(255) NOT NULL, v LONGBLOB NOT NULL) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
  );
  const [row] = (await query("SELECT @@max_allowed_packet AS n")) as readonly (Record<string, unknown> & readonly unknown[])[];
  return Number(row?.["n"] ?? row?.[0]);
}

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Does what the batch says, inside a transaction; false takes it back. */
async function apply(query: Query, name: string, batch: Batch, statements: readonly Statement[]): Promise<boolean> {
  if (batch.expect !== undefined && !(await isAsExpected(query, name, batch.expect))) return false;
  for (const { text, values } of statements) await query(text, values);
  return true;
}

/**
 * Absence is proved by inserting the key: a lock on what is not there would let two different new sessions wait for
 * each other. A revision is proved by a lock on the row that has it; where there is none, nothing is written after it.
 */
async function isAsExpected(query: Query, name: string, expect: NonNullable<Batch["expect"]>): Promise<boolean> {
  const key = bytes(expect.key);
  if (expect.revision !== null) {
    const rows = await query(`SELECT revision FROM ${name} WHERE k = ? AND revision = ? FOR UPDATE`, [key, bytes(expect.revision)]);
    return (rows as readonly unknown[]).length === 1;
  }
  try {
    await query(`INSERT INTO ${name} (k, revision, v) VALUES (?, '', '')`, [key]);
    await query(`DELETE FROM ${name} WHERE k = ?`, [key]);
    return true;
  } catch (error) {
    if (numberOf(error) === DUPLICATE) return false;
    throw error;
  }
}

/** The statements of a batch, each below the largest packet; STATE_TOO_LARGE if one record cannot be. */
function statementsOf(name: string, batch: Batch, largest: number): Statement[] {
  const statements: Statement[] = (batch.removePrefix ?? []).map((prefix) => {
    const end = endOf(prefix);
    return end === undefined
      ? { text: `DELETE FROM ${name}`, values: [] }
      : { text: `DELETE FROM ${name} WHERE k >= ? AND k < ?`, values: [bytes(prefix), bytes(end)] };
  });
  for (const keys of chunks(batch.remove, (key) => 2 * key.length, largest)) {
    statements.push({ text: `DELETE FROM ${name} WHERE k IN (?)`, values: [keys.map(bytes)] });
  }
  const revision = bytes(batch.revision);
  const sizeOf = ({ key, value }: Batch["put"][number]): number => 2 * (key.length + revision.length + value.length) + 20;
  for (const records of chunks(batch.put, sizeOf, largest)) {
    const text = `INSERT INTO ${name} (k, revision, v) VALUES ? ON DUPLICATE KEY UPDATE revision = VALUES(revision), v = VALUES(v)`;
    statements.push({ text, values: [records.map(({ key, value }) => [bytes(key), revision, Buffer.from(value)])] });
  }
  return statements;
}

/** The list in pieces that fit into a packet each. */
function chunks<T>(list: readonly T[], sizeOf: (item: T) => number, largest: number): T[][] {
  const room = largest - 1_000;
  const pieces: T[][] = [];
  let left = 0;
  for (const item of list) {
    const size = sizeOf(item);
    if (size > room) {
      throw new LockgateError("STATE_TOO_LARGE", `a record of ${Math.round(size / 2)} bytes does not fit into the server's packets`, {
        hint: `raise max_allowed_packet, which is ${largest}`,
      });
    }
    if (pieces.length === 0 || size > left || pieces.at(-1)!.length >= 1_000) {
      pieces.push([]);
      left = room;
    }
    pieces.at(-1)!.push(item);
    left -= size;
  }
  return pieces;
}

function listing(name: string, prefix: string, { after, limit, keysOnly }: Page): Statement {
  const end = endOf(prefix);
  const isAfter = after !== undefined && after >= prefix;
  const conditions = [isAfter ? "k > ?" : "k >= ?", ...(end === undefined ? [] : ["k < ?"])];
  const values: unknown[] = [bytes(isAfter ? after : prefix), ...(end === undefined ? [] : [bytes(end)])];
  const columns = keysOnly ? "k, revision, '' AS v" : "k, revision, v";
  const limited = limit === undefined ? "" : ` LIMIT ${Math.max(0, Math.floor(limit))}`;
  return { text: `SELECT ${columns} FROM ${name} WHERE ${conditions.join(" AND ")} ORDER BY k${limited}`, values };
}

/** Makes an attempt again when the server chose it as the victim of a deadlock. */
async function patiently(attempt: () => Promise<boolean>): Promise<"ok" | "conflict"> {
  for (let nth = 1; ; nth++) {
    try {
      return (await attempt()) ? "ok" : "conflict";
    } catch (error) {
      if (!DEADLOCKS.includes(numberOf(error)) || nth === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * 2 ** nth));
    }
  }
}

/** A deadlock, and a lock that was waited for too long. */
const DEADLOCKS: readonly number[] = [1213, 1205];

function rowsOf(rows: unknown): (StoredRecord & { readonly key: string })[] {
  return (rows as readonly (Record<string, unknown> & readonly unknown[])[]).map((row) => ({
    key: String(row["k"] ?? row[0]),
    revision: String(row["revision"] ?? row[1]),
    value: Uint8Array.from(Buffer.from((row["v"] ?? row[2]) as Buffer)),
  }));
}

/** Whoever asks for a key twice gets it twice. */
const copyOf = (record: StoredRecord | undefined): StoredRecord | null =>
  record === undefined ? null : { value: record.value.slice(), revision: record.revision };

const bytes = (text: string): Buffer => Buffer.from(text, "utf8");

/** A server that is not strict would cut a longer one silently. */
function checkKey(key: string): void {
  if (key.length > 512 || key.length === 0) throw wrong("a key has no bytes, or more than 512", "keys come from the engine", "INPUT_INVALID");
}

function wrong(message: string, hint: string, code: "OPTIONS" | "INPUT_INVALID" = "OPTIONS"): LockgateError {
  return new LockgateError(code, message, { hint });
}

/** The method, with what the client throws as errors of ours. */
function typed<A extends readonly unknown[], T>(method: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      throw fromSql(error);
    }
  };
}
