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

/** Why tests with these servers cannot run here; false if they can. */
export const withoutRedis = programs.redis ? false : "there is no redis-server here";
export const withoutMariaDb =
  programs.mariadbd && programs.installDb ? false : "there is no mariadbd here";

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
      child.once("close", resolve);
      child.kill(signal);
    });
  process.on("exit", () => isUp() && child.kill("SIGKILL"));
  return { start, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
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
