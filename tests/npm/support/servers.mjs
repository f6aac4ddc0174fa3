// Real servers for stores, each with its own folder and port. Tests start, kill and restart them by process id.
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { must, which } from "../../../src/build/run.mjs";

const programs = {
  redis: process.env.REDIS_SERVER ?? which("redis-server"),
  mariadbd: process.env.MARIADBD ?? which("mariadbd"),
  installDb: process.env.MARIADB_INSTALL_DB ?? which("mariadb-install-db"),
};
const PATIENCE_MS = 60_000;
/** How long a server may take to end by itself. */
const ENDING_MS = 10_000;

/** Why tests with these servers cannot run here; false if they can. */
export const withoutRedis = programs.redis ? false : "there is no redis-server here";
export const withoutMariaDb =
  programs.mariadbd && programs.installDb ? false : "there is no mariadbd here";

const running = new Set();
process.on("exit", () => running.forEach((end) => end()));
const folders = [];
process.on("exit", () => folders.forEach((it) => fs.rmSync(it, { recursive: true, force: true })));

/** A folder that is removed when this process ends. */
export function folder(name, parent = os.tmpdir()) {
  const made = fs.mkdtempSync(path.join(parent, `lockgate-${name}-`));
  folders.push(made);
  return made;
}

/** The same in memory, if the machine supports it: for tests that do not depend on the disk. */
export const quickFolder = (name) =>
  folder(name, fs.existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir());

/** A Redis that writes every change to its append-only file at once, unless `settings` change this. */
export async function startRedis(settings = {}) {
  const dir = folder("redis");
  const port = await freePort();
  const all = {
    port,
    bind: "127.0.0.1",
    dir,
    save: "",
    appendonly: "yes",
    appendfsync: "always",
    ...settings,
  };
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = serverOf(programs.redis, args, "Ready to accept connections");
  await server.start();
  return { ...server, port, url: `redis://127.0.0.1:${port}` };
}

/**
 * A cluster of three masters, each with a replica. `masters` and `replicas` are in the order of their slots: the replica takes over
 * when its master is killed. `nodes` are for clients.
 */
export async function startRedisCluster(settings = {}) {
  const all = await Promise.all(
    Array.from({ length: 6 }, () =>
      startRedis({ "cluster-enabled": "yes", "cluster-node-timeout": 1_000, "repl-diskless-sync-delay": 0, ...settings }),
    ),
  );
  const [masters, replicas] = [all.slice(0, 3), all.slice(3)];
  for (const [nth, { port }] of masters.entries()) {
    const [first, last] = [Math.ceil((nth * 16_384) / 3), Math.ceil(((nth + 1) * 16_384) / 3) - 1];
    await ask(port, "CLUSTER", "SET-CONFIG-EPOCH", String(nth + 1));
    await ask(port, "CLUSTER", "ADDSLOTSRANGE", String(first), String(last));
  }
  for (const { port } of all.slice(1)) await ask(port, "CLUSTER", "MEET", "127.0.0.1", String(masters[0].port));
  const isKnown = (port) => async (said = ask(port, "CLUSTER", "NODES")) => (await said).trim().split("\n").filter((line) => !/handshake|fail/.test(line)).length === 6;
  for (const { port } of all) await until(`node ${port} to know the others`, isKnown(port));
  for (const [nth, { port }] of replicas.entries()) {
    await ask(port, "CLUSTER", "REPLICATE", await ask(masters[nth].port, "CLUSTER", "MYID"));
  }
  for (const { port } of masters) {
    await until(`a replica of ${port}`, async () => /slave0:.*state=online/.test(await ask(port, "INFO", "replication")));
  }
  for (const { port } of all) await until(`the cluster to be complete for ${port}`, async () => /cluster_state:ok/.test(await ask(port, "CLUSTER", "INFO")));
  const stop = () => Promise.all(all.map((each) => each.stop()));
  return { masters, replicas, nodes: all.map(({ port }) => ({ host: "127.0.0.1", port })), stop };
}

/** A master with two replicas and three Sentinels, which make a replica the master when it is gone. `sentinels` are for clients. */
export async function startRedisSentinels(settings = {}, { downAfterMs = 1_000 } = {}) {
  const own = { "repl-diskless-sync-delay": 0, ...settings };
  const master = await startRedis(own);
  const replicas = await Promise.all([1, 2].map(() => startRedis({ ...own, replicaof: `127.0.0.1 ${master.port}` })));
  await until("two replicas", async () => (await ask(master.port, "INFO", "replication")).match(/state=online/g)?.length === 2);
  const watchers = await Promise.all([1, 2, 3].map(() => startSentinel(master.port, downAfterMs)));
  for (const { port } of watchers) {
    const isComplete = async () => /name=lockgate,status=ok,.*slaves=2,sentinels=3/.test(await ask(port, "INFO", "sentinel"));
    await until(`Sentinel ${port} to see the others`, isComplete);
  }
  const stop = () => Promise.all([...watchers, master, ...replicas].map((each) => each.stop()));
  return { name: "lockgate", master, replicas, sentinels: watchers.map(({ port }) => ({ host: "127.0.0.1", port })), stop };
}

async function startSentinel(master, downAfterMs) {
  const port = await freePort();
  const dir = folder("sentinel");
  const file = path.join(dir, "sentinel.conf");
  const lines = [
    `port ${port}`, "bind 127.0.0.1", `dir ${dir}`, `sentinel monitor lockgate 127.0.0.1 ${master} 2`,
    `sentinel down-after-milliseconds lockgate ${downAfterMs}`, "sentinel failover-timeout lockgate 4000",
  ];
  fs.writeFileSync(file, `${lines.join("\n")}\n`);
  const server = serverOf(programs.redis, [file, "--sentinel"], "+monitor master");
  await server.start();
  return { ...server, port };
}

/** Asks a Redis one question over a connection of its own. Rejects if the answer is an error. */
export async function ask(port, ...command) {
  const { createClient } = await import("redis");
  const client = createClient({ url: `redis://127.0.0.1:${port}`, disableOfflineQueue: false, socket: { reconnectStrategy: false } });
  client.on("error", () => {});
  await client.connect();
  try {
    return await client.sendCommand(command);
  } finally {
    client.destroy();
  }
}

const unlessFatal = (error) => {
  if (error.isFatal) throw error;
  return false;
};

/** Waits until `holds` answers true; an error counts as false, unless it is marked `isFatal`. For what happens in another process, which tells nobody. */
export async function until(what, holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await holds().catch(unlessFatal))) {
    if (Date.now() > end) throw new Error(`waited ${PATIENCE_MS} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A MariaDB with an empty database `test`; `settings` are further options of its command line. */
export async function startMariaDb(settings = []) {
  const dir = folder("mariadb");
  const port = await freePort();
  const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];
  const own = ["--no-defaults", ...asRoot, `--datadir=${dir}/data`];
  await must(
    programs.installDb,
    [...own, "--auth-root-authentication-method=normal", "--skip-test-db"],
    { advice: "mariadb-install-db could not make a data folder." },
  );
  const args = [
    ...own,
    `--port=${port}`,
    "--bind-address=127.0.0.1",
    `--socket=${dir}/socket`,
    `--pid-file=${dir}/pid`,
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    ...settings,
  ];
  const server = serverOf(programs.mariadbd, args, "ready for connections");
  await server.start();
  return { ...server, port, options: { host: "127.0.0.1", port, user: "root", database: "mysql" } };
}

/** Starts a program and waits until it reports that it is ready. */
function serverOf(program, args, ready) {
  let child;
  const isUp = () => child !== undefined && child.exitCode === null && child.signalCode === null;
  const start = () =>
    new Promise((resolve, reject) => {
      let said = "";
      child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
      const limit = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
      const hear = (text) => {
        said += text;
        if (!said.includes(ready)) return;
        clearTimeout(limit);
        resolve();
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.on("error", reject);
      child.on("close", () => {
        clearTimeout(limit);
        reject(new Error(`${program} ended before it was ready:\n${said}`));
      });
    });
  const end = (signal) =>
    new Promise((resolve) => {
      if (!isUp()) return resolve();
      // A Redis that writes its first append-only file refuses to end.
      const limit = setTimeout(() => child.kill("SIGKILL"), ENDING_MS);
      child.once("close", () => (clearTimeout(limit), resolve()));
      child.kill(signal);
    });
  running.add(() => isUp() && child.kill("SIGKILL"));
  const pause = () => child.kill("SIGSTOP");
  const resume = () => child.kill("SIGCONT");
  return { start, stop: () => end("SIGTERM"), kill: () => end("SIGKILL"), pause, resume };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/**
 * A proxy to a server whose connections a test can cut. `cutAfter(text)` forwards the request with this text, and cuts the connection
 * before the answer; `cut()` cuts all connections at once.
 */
export async function startProxy(target) {
  const open = new Set();
  let mark;
  const proxy = net.createServer((near) => {
    const far = net.connect(target, "127.0.0.1");
    let isDeaf = false;
    const end = () => (near.destroy(), far.destroy(), open.delete(end));
    open.add(end);
    near.on("data", (bytes) => {
      if (mark !== undefined && bytes.includes(mark)) {
        isDeaf = true;
        mark = undefined;
      }
      far.write(bytes);
    });
    // The answer shows that the server has done the work; it is not forwarded.
    far.on("data", (bytes) => (isDeaf ? end() : near.write(bytes)));
    for (const side of [near, far]) side.on("error", end).on("close", end);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    port: proxy.address().port,
    cutAfter: (text) => (mark = text),
    cut: () => [...open].forEach((end) => end()),
    close: () => new Promise((resolve) => ([...open].forEach((end) => end()), proxy.close(resolve))),
  };
}
