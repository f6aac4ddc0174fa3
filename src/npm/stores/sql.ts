// `sqlStore`: a store in a table of MySQL or MariaDB, through the user's client. One transaction per batch.
//
// Keys, revisions and values are bytes in binary columns, so collations, character sets, padding and quoting do not affect
// comparisons.

import { LockgateError } from "../errors.js";
import type { Batch, Store, StoreCapabilities, StoredRecord } from "../types/store.js";
import { endOf } from "./keys.js";
import type { Page } from "./keys.js";
import { Connections } from "./sql-connection.js";
import type { Query, SqlClient } from "./sql-connection.js";
import { durabilityOfServer } from "./sql-durability.js";
import { fromSql, numberOf } from "./sql-errors.js";

const CAPABILITIES: StoreCapabilities = {
  atomic: true,
  compareAndSet: true,
  shared: "cluster",
  durability: "disk",
  evictable: false,
  // Values are sent in hexadecimal, so a packet has twice this size. That is below the smallest usual packet limit.
  maxValueBytes: 1_000_000,
};

const ATTEMPTS = 4;
const DUPLICATE = 1062;

/** A store in a table, which is created on first use. `client` is a connection or a pool of `mysql2/promise`. */
export function sqlStore(client: SqlClient, options: { readonly dialect: "mysql"; readonly table?: string }): Store {
  const { dialect, table = "lockgate" } = options ?? {};
  if (dialect !== "mysql") throw wrong(`sqlStore has no dialect ${JSON.stringify(dialect)}`, 'sqlStore(pool, { dialect: "mysql" })');
  if (typeof table !== "string" || !/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(table)) {
    throw wrong("the name of the table is not valid", "use at most 64 letters, digits and _");
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
    get: withTypedErrors(async (keys: readonly string[]) => {
      if (keys.length === 0) return [];
      keys.forEach(checkKey);
      await prepare();
      const unique = [...new Set(keys)].map(bytes);
      const rows = await connections.use((query) => query(`SELECT k, revision, v FROM ${name} WHERE k IN (?)`, [unique]));
      const found = new Map(rowsOf(rows).map((row) => [row.key, row]));
      return keys.map((key) => copyOf(found.get(key)));
    }),
    list: withTypedErrors(async (prefix: string, page: Page = {}) => {
      await prepare();
      const { text, values } = listStatement(name, prefix, page);
      return rowsOf(await connections.use((query) => query(text, values)));
    }),
    commit: withTypedErrors(async (batch: Batch) => {
      [...batch.put.map(({ key }) => key), ...batch.remove].forEach(checkKey);
      if (batch.revision.length > 255) throw wrong("a revision is over 255 bytes", "use a shorter one", "INPUT_INVALID");
      const largest = await prepare();
      const statements = statementsOf(name, batch, largest);
      return retryDeadlocks(() => connections.transaction((query) => apply(query, name, batch, statements)));
    }),
    report: withTypedErrors(() => connections.use((query) => durabilityOfServer(query, table))),
  };
}

/** Creates the table. Returns the largest size of a statement in bytes. */
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

/** Applies a batch inside a transaction. Returns false, for a rollback, if the expected revision differs. */
async function apply(query: Query, name: string, batch: Batch, statements: readonly Statement[]): Promise<boolean> {
  if (batch.expect !== undefined && !(await isAsExpected(query, name, batch.expect))) return false;
  for (const { text, values } of statements) await query(text, values);
  return true;
}

/**
 * Whether the key has the expected revision. To check that the key is absent, it is inserted and deleted: a lock on an absent
 * row could make two different new sessions wait for each other. A revision is checked with a lock on its row.
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

/** The statements of a batch, each below the largest packet. Throws STATE_TOO_LARGE if a single record is too large. */
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

/** Splits the list into chunks that fit into one packet each. */
function chunks<T>(list: readonly T[], sizeOf: (item: T) => number, largest: number): T[][] {
  const room = largest - 1_000;
  const found: T[][] = [];
  let left = 0;
  for (const item of list) {
    const size = sizeOf(item);
    if (size > room) {
      throw new LockgateError("STATE_TOO_LARGE", `a record of ${Math.round(size / 2)} bytes does not fit into the server's packets`, {
        hint: `raise max_allowed_packet, which is ${largest}`,
      });
    }
    if (found.length === 0 || size > left || found.at(-1)!.length >= 1_000) {
      found.push([]);
      left = room;
    }
    found.at(-1)!.push(item);
    left -= size;
  }
  return found;
}

function listStatement(name: string, prefix: string, { after, limit, keysOnly }: Page): Statement {
  const end = endOf(prefix);
  const isAfter = after !== undefined && after >= prefix;
  const conditions = [isAfter ? "k > ?" : "k >= ?", ...(end === undefined ? [] : ["k < ?"])];
  const values: unknown[] = [bytes(isAfter ? after : prefix), ...(end === undefined ? [] : [bytes(end)])];
  const columns = keysOnly ? "k, revision, '' AS v" : "k, revision, v";
  const limited = limit === undefined ? "" : ` LIMIT ${Math.max(0, Math.floor(limit))}`;
  return { text: `SELECT ${columns} FROM ${name} WHERE ${conditions.join(" AND ")} ORDER BY k${limited}`, values };
}

/** Retries when the server ends the transaction because of a deadlock. */
async function retryDeadlocks(attempt: () => Promise<boolean>): Promise<"ok" | "conflict"> {
  for (let nth = 1; ; nth++) {
    try {
      return (await attempt()) ? "ok" : "conflict";
    } catch (error) {
      if (!DEADLOCKS.includes(numberOf(error)) || nth === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * 2 ** nth));
    }
  }
}

/** The error numbers for a deadlock, and for a lock wait timeout. */
const DEADLOCKS: readonly number[] = [1213, 1205];

function rowsOf(rows: unknown): (StoredRecord & { readonly key: string })[] {
  return (rows as readonly (Record<string, unknown> & readonly unknown[])[]).map((row) => ({
    key: String(row["k"] ?? row[0]),
    revision: String(row["revision"] ?? row[1]),
    value: Uint8Array.from(Buffer.from((row["v"] ?? row[2]) as Buffer)),
  }));
}

/** A copy for each requested key: the same key may be requested twice. */
const copyOf = (record: StoredRecord | undefined): StoredRecord | null =>
  record === undefined ? null : { value: record.value.slice(), revision: record.revision };

const bytes = (text: string): Buffer => Buffer.from(text, "utf8");

/** A server without strict mode would cut a longer key silently. */
function checkKey(key: string): void {
  if (key.length > 512 || key.length === 0) throw wrong("a key is empty or longer than 512 bytes", "use keys that the engine makes", "INPUT_INVALID");
}

function wrong(message: string, hint: string, code: "OPTIONS" | "INPUT_INVALID" = "OPTIONS"): LockgateError {
  return new LockgateError(code, message, { hint });
}

/** The method, with errors of the client turned into LockgateErrors. */
function withTypedErrors<A extends readonly unknown[], T>(method: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      throw fromSql(error);
    }
  };
}
