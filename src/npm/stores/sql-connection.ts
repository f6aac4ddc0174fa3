// Runs queries and transactions with a client of `mysql2/promise`: a single connection or a pool.

import { LockgateError } from "../errors.js";
import { isLost } from "./sql-errors.js";

/** A connection or a pool. */
export interface SqlClient {
  /** Runs one statement. A question mark in it stands for a value. */
  query(sql: string, values?: any): Promise<unknown>;
}

/** Runs one statement. Returns the rows, or the number of changes. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<unknown>;

interface Pool extends SqlClient {
  getConnection(): Promise<SqlClient & { release(): void; destroy(): void }>;
}

/** The connections of one store: a single connection, or those of a pool. */
export class Connections {
  readonly #client: SqlClient;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(client: SqlClient) {
    if (typeof client?.query !== "function") {
      throw new LockgateError("OPTIONS", "sqlStore needs an SQL client", { hint: "pass a connection or a pool of mysql2/promise" });
    }
    this.#client = client;
  }

  /** Runs queries outside a transaction. If a connection of a pool is lost, another one is tried once. */
  async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    if (!isPool(this.#client)) return this.#serially(() => work(queryOf(this.#client)));
    return retryIfLost(() => work(queryOf(this.#client)));
  }

  /** Runs `work` in a transaction. The transaction is rolled back if `work` returns false or throws. */
  async transaction(work: (query: Query) => Promise<boolean>): Promise<boolean> {
    const client = this.#client;
    if (!isPool(client)) return this.#serially(() => inTransaction(queryOf(client), work));
    // Before COMMIT is sent nothing can have been stored, so the work can be repeated on another connection.
    return retryIfLost(async () => {
      const connection = await client.getConnection();
      try {
        const done = await inTransaction(queryOf(connection), work);
        connection.release();
        return done;
      } catch (error) {
        connection.destroy();
        throw error;
      }
    });
  }

  /** A single connection has one transaction at a time, and any other query would become part of it. */
  #serially<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }
}

async function inTransaction(query: Query, work: (query: Query) => Promise<boolean>): Promise<boolean> {
  let done: boolean;
  try {
    await query("START TRANSACTION");
    done = await work(query);
  } catch (error) {
    await query("ROLLBACK").catch(() => {});
    throw error;
  }
  if (!done) await query("ROLLBACK");
  else await query("COMMIT").catch(outcomeUnknown);
  return done;
}

/** After a failed COMMIT the outcome is unknown, so the store does not retry. The engine reads the head to find out. */
function outcomeUnknown(cause: unknown): never {
  const message = cause instanceof Error ? cause.message : String(cause);
  throw new LockgateError("STORE_UNAVAILABLE", `the connection was lost during a commit: ${message}`, { hint: "check whether the server runs", cause });
}

async function retryIfLost<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (!isLost(error)) throw error;
    return attempt();
  }
}

const isPool = (client: SqlClient): client is Pool => "getConnection" in client && typeof client.getConnection === "function";

/** The `query` method of a client, without the column descriptions in its result `[rows, columns]`. */
function queryOf(client: SqlClient): Query {
  return async (text, values) => {
    const asked: unknown = client.query(text, values);
    // The result of a client with callbacks has a `then` that throws.
    const answer: unknown = asked instanceof Promise ? await asked : undefined;
    if (Array.isArray(answer)) return answer[0] as unknown;
    throw new LockgateError("OPTIONS", "the SQL client does not return promises of rows", { hint: 'import it from "mysql2/promise"' });
  };
}
