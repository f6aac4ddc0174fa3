// The stores of Node whose sessions are damaged, and damage to the files of fileStore.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import mysql from "mysql2/promise";
import { createClient } from "redis";
import { packedModule } from "../support/project.mjs";
import { quickFolder, startMariaDb, startRedis, withoutMariaDb, withoutRedis } from "../support/servers.mjs";
import { damageRecords, damagedSessions } from "./corruption.mjs";

/** Damages a file of the user whose session it is: changes bits of it, removes it, or swaps it with another. */
const damageFiles = (root) => async (store, prefix, below) => {
  await store.close();
  const folder = path.join(root, "1.t.helper", "t.alice", "0");
  // A file also names, as a prefix, the session that the file before it changed.
  const ownKey = new RegExp(`${prefix.replaceAll(".", "\\.")}[a-z]`);
  const isOwn = (name) => ownKey.test(fs.readFileSync(path.join(folder, name), "latin1"));
  const names = fs.readdirSync(folder).filter((name) => /^\d+$/.test(name) && isOwn(name));
  const [one, other] = [names[below(names.length)], names[below(names.length)]].map((name) => path.join(folder, name));
  const bytes = fs.readFileSync(one);
  switch (below(3)) {
    case 0: {
      const place = below(bytes.length * 8);
      bytes[place >> 3] ^= 1 << (place & 7);
      fs.writeFileSync(one, bytes);
      return `bit ${place} of ${one}`;
    }
    case 1:
      fs.unlinkSync(one);
      return `without ${one}`;
    default:
      fs.writeFileSync(one, fs.readFileSync(other));
      fs.writeFileSync(other, bytes);
      return `${one} and ${other} are swapped`;
  }
};

export async function corruptionTests(n) {
  const kit = await packedModule("lockgate");
  const { fileStore } = await packedModule("lockgate/stores/node");
  const { redisStore } = await packedModule("lockgate/stores/redis");
  const { sqlStore } = await packedModule("lockgate/stores/sql");
  const seeds = Array.from({ length: n }, (_, seed) => seed);
  const enough = ({ refused, repaired }) => {
    assert.ok(refused > n / 4, `only ${refused} of ${n} were noticed`);
    return repaired;
  };

  test(`${n} damaged sessions in memory are read as they were or refused, and harm no other`, async () => {
    const store = kit.memoryStore();
    const kept = { ...store, close: undefined };
    enough(await damagedSessions({ kit, open: () => kept, seeds }));
  });

  test(`${n} damaged sessions in files are read as they were or refused, and harm no other`, async () => {
    const root = quickFolder("records");
    enough(await damagedSessions({ kit, open: () => fileStore(root), seeds }));
  });

  test(`${n} sessions in damaged files are read as they were or refused, and harm no other`, async () => {
    let root;
    let total = 0;
    for (const seed of seeds) {
      root = quickFolder("damaged");
      const { refused } = await damagedSessions({ kit, open: () => fileStore(root), seeds: [seed], damage: damageFiles(root) });
      total += refused;
      fs.rmSync(root, { recursive: true });
    }
    enough({ refused: total });
  });

  test(`${n} damaged sessions in Redis are read as they were or refused, and harm no other`, { skip: withoutRedis }, async (t) => {
    const server = await startRedis({ appendfsync: "everysec" });
    const client = createClient({ url: server.url }).on("error", () => {});
    await client.connect();
    t.after(() => {
      client.destroy();
      return server.stop();
    });
    enough(await damagedSessions({ kit, open: () => redisStore(client), seeds, damage: damageRecords }));
  });

  test(`${n} damaged sessions in MariaDB are read as they were or refused, and harm no other`, { skip: withoutMariaDb }, async (t) => {
    const server = await startMariaDb();
    const first = await mysql.createConnection(server.options);
    await first.query("CREATE DATABASE lockgate");
    await first.end();
    const pool = mysql.createPool({ ...server.options, database: "lockgate" });
    t.after(async () => {
      await pool.end();
      await server.stop();
    });
    enough(await damagedSessions({ kit, open: () => sqlStore(pool, { dialect: "mysql" }), seeds, damage: damageRecords }));
  });
}
