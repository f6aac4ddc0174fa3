// Connections of a client of `mysql2/promise`: one that must be shared in turns, or a pool of them.

import { LockgateError } from "../errors.js";
import { isLost } from "./sql-errors.js";

/** A connection or a pool. */
export interface SqlClient {
  query(sql: string, values?: any): Promise<unknown>;
}

/** Asks one question; the answer is the rows, or what was changed. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<unknown>;

interface Pool extends SqlClient {
  getConnection(): Promise<SqlClient & { release(): void; destroy(): void }>;
}

export class Connections {
  readonly #client: SqlClient;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(client: SqlClient) {
    if (typeof client?.query !== "function") {
      throw new LockgateError("OPTIONS", "that is no SQL client", { hint: "sqlStore takes a connection or a pool of mysql2/promise" });
    }
    this.#client = client;
  }

  /** Asks outside a transaction. A connection that died since it was last used is replaced once. */
  async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    if (!isPool(this.#client)) return this.#alone(() => work(queryOf(this.#client)));
    return againIfLost(() => work(queryOf(this.#client)));
  }

  /** Everything the work asks, or nothing; it answers false to take it back. */
  async transaction(work: (query: Query) => Promise<boolean>): Promise<boolean> {
    const client = this.#client;
    if (!isPool(client)) return this.#alone(() => within(queryOf(client), work));
    // Before COMMIT is sent nothing can have been stored, so a connection that was lost is no loss.
    return againIfLost(async () => {
      const connection = await client.getConnection();
      try {
        const done = await within(queryOf(connection), work);
        connection.release();
        return done;
      } catch (error) {
        connection.destroy();
        throw error;
      }
    });
  }

  /** A single connection has one transaction at a time, and whatever else is asked meanwhile would be part of it. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

async function within(query: Query, work: (query: Query) => Promise<boolean>): Promise<boolean> {
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

/** Nobody knows what became of it, so it is not tried again here: the engine looks. */
function outcomeUnknown(cause: unknown): never {
  const message = cause instanceof Error ? cause.message : String(cause);
  throw new LockgateError("STORE_UNAVAILABLE", `the connection was lost during a commit: ${message}`, { hint: "see whether the server runs", cause });
}

async function againIfLost<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (!isLost(error)) throw error;
    return attempt();
  }
}

const isPool = (client: SqlClient): client is Pool => "getConnection" in client && typeof client.getConnection === "function";

/** A client's `query`, whose answer is `[rows, columns]`. */
function queryOf(client: SqlClient): Query {
  return async (text, values) => {
    const asked: unknown = client.query(text, values);
    // What a client with callbacks answers has a `then` that complains.
    const answer: unknown = asked instanceof Promise ? await asked : undefined;
    if (Array.isArray(answer)) return answer[0] as unknown;
    throw new LockgateError("OPTIONS", "the SQL client does not answer with promises of rows", { hint: 'import it from "mysql2/promise"' });
  };
}
