// What the settings of a MySQL or MariaDB server say about how long records stay.

import type { StoreReport } from "../types/store.js";
import type { Query } from "./sql-connection.js";

/** Asks the server. A server may be another one that only speaks the protocol: then nothing is known. */
export async function durabilityOfServer(query: Query, table: string): Promise<StoreReport> {
  try {
    const [flush, hasLog, syncLog] = await row(query, "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog");
    const [engine] = await row(query, "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", [table]);
    const warnings = [
      // 3 is a value of MariaDB that writes to the disk twice.
      ![1, 3].includes(Number(flush)) && `a crash loses the last turns (innodb_flush_log_at_trx_commit is ${String(flush)}): set it to 1`,
      // After a crash InnoDB rolls back what is not in the binary log.
      Number(hasLog) === 1 && Number(syncLog) !== 1 && `a power cut loses the last turns (sync_binlog is ${String(syncLog)}): set it to 1, or turn the binary log off`,
      engine !== undefined && String(engine) !== "InnoDB" && `the table has the engine ${String(engine)}, which keeps no transactions: ALTER TABLE ${table} ENGINE = InnoDB`,
    ].filter((warning) => warning !== false);
    return { durability: warnings.length > 0 ? "not-durable" : "durable", warnings };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { durability: "unknown", warnings: [`the SQL server does not tell how durable it is: ${why}`] };
  }
}

/** The values of the first row. Clients may be configured to return rows as arrays. */
async function row(query: Query, text: string, values: readonly unknown[] = []): Promise<readonly unknown[]> {
  const [first] = (await query(text, values)) as readonly object[];
  return Object.values(first ?? {});
}
