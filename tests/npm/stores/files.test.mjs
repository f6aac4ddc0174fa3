// The file store on a real disk: full, read-only, out of file handles, edited by hand, with symbolic links, and shared.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { capture, inRoot, which } from "../../../src/build/run.mjs";
import { packedModule, project, story } from "../support/project.mjs";
import { folder, quickFolder } from "../support/servers.mjs";

const { createAgent, customModel, textOf } = await packedModule("lockgate");
const { fileStore } = await packedModule("lockgate/stores/node");

const bytes = (text) => new TextEncoder().encode(text);
const text = (value) => new TextDecoder().decode(value);
const putting = (revision, ...records) => ({
  revision,
  put: records.map(([key, value]) => ({ key, value: bytes(value) })),
  remove: [],
});
const filesBelow = (root) =>
  fs
    .readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
const refused = async (promise) => {
  const error = await promise.then(
    () => assert.fail("it was expected to fail"),
    (thrown) => thrown,
  );
  return { code: error.code, hint: error.hint, message: error.message, cause: error.cause?.code };
};
const echo = () =>
  customModel({
    id: "echo",
    async *generate({ messages }) {
      yield { type: "text", text: `to ${textOf(messages.at(-1))}` };
    },
  });

/** Runs a program in the project under a shell command that prepares its environment; skips if the machine cannot do that. */
async function inWorld(t, shell, source) {
  const file = path.join(await project(), `world-${process.hrtime.bigint()}.mjs`);
  fs.writeFileSync(file, source);
  if (!which("unshare")) return t.skip("there is no unshare here to mount a file system with");
  const args = ["-rm", "sh", "-c", `${shell} && exec "$NODE" ${file}`];
  const { code, output, stdout } = await capture("unshare", args, {
    env: { NODE: process.execPath, PLACE: folder("world"), NODE_OPTIONS: "" },
  });
  assert.equal(code, 0, output);
  return JSON.parse(stdout);
}

const prelude = `
import fs from "node:fs";
import { fileStore } from "lockgate/stores/node";
const place = process.env.PLACE;
const value = (n) => new Uint8Array(n).fill(120);
const put = (revision, key, n) => ({ revision, put: [{ key, value: value(n) }], remove: [] });
const came = async (promise) => promise.catch(({ code, hint, cause, message }) =>
  ({ code, hint: Boolean(hint), cause: cause?.code, hasContent: message.includes("xxx"), hasPath: message.includes(place) }));
const store = fileStore(place + "/store");
`;

test("nothing is read or written before the first call, and the first record creates the folder", async () => {
  const root = path.join(folder("lazy"), "below", "store");
  const store = fileStore(root);
  const agent = await createAgent({ name: "helper", model: echo(), store });
  assert.ok(!fs.existsSync(root));
  assert.deepEqual(await store.get(["a/u/x"]), [null]);
  assert.deepEqual(await agent.history({ sessionId: "s" }), []);
  assert.ok(!fs.existsSync(root), "reading creates no folder");
  await agent.call("hello", { sessionId: "s" });
  assert.ok(fs.existsSync(root));
});

story(
  "an agent without a store option keeps its sessions in files beside the program, and another agent finds them",
  async ({ createAgent, echo, lines, assert }) => {
    const { existsSync } = await import("node:fs");
    const agent = await createAgent({ name: "helper", model: echo("to ") });
    assert.ok(!existsSync(".lockgate"), "nothing is created before the first call");
    await agent.call("hello", { sessionId: "s" });
    assert.ok(existsSync(".lockgate"));
    await agent.close();
    const another = await createAgent({ name: "helper", model: echo("to ") });
    assert.deepEqual(lines(await another.history({ sessionId: "s" })), ["user: hello", "assistant: to hello"]);
  },
);

// F-08
test("a full disk is STORE_QUOTA and changes nothing, and the store works again when there is room", async (t) => {
  const found = await inWorld(
    t,
    'mount -t tmpfs -o size=1m tmpfs "$PLACE"',
    `${prelude}
    await store.commit(put("r1", "a/u/kept", 1000));
    const full = await came(store.commit(put("r2", "a/u/large", 2_000_000)));
    let n = 0;
    while ((await came(store.commit(put("f" + n, "a/u/" + n, 50_000)))) === "ok") n += 1;
    const again = await came(store.commit(put("r3", "a/u/kept", 60_000)));
    const kept = (await fileStore(place + "/store").get(["a/u/kept", "a/u/large"])).map((it) => it && [it.revision, it.value.length]);
    const names = fs.readdirSync(place + "/store/a/u/0").filter((name) => name.startsWith("_"));
    await store.commit({ revision: "r4", put: [], remove: [], removePrefix: ["a/u/"] }).catch(() => {});
    await store.close();
    fs.rmSync(place + "/store", { recursive: true });
    const after = await came(fileStore(place + "/store").commit(put("r5", "a/u/kept", 1000)));
    console.log(JSON.stringify({ full, n: n > 5, again, kept, names, after }));`,
  );
  if (found === undefined) return;
  const quota = { code: "STORE_QUOTA", hint: true, cause: "ENOSPC", hasContent: false, hasPath: false };
  assert.deepEqual(found, {
    full: quota,
    n: true,
    again: quota,
    kept: [["r1", 1000], null],
    names: [],
    after: "ok",
  });
});

// F-08
test("a read-only disk is STORE_UNAVAILABLE with the path, and can still be read", async (t) => {
  const found = await inWorld(
    t,
    'mount -t tmpfs -o size=1m tmpfs "$PLACE"',
    `${prelude}
    import { execFileSync } from "node:child_process";
    await store.commit(put("r1", "a/u/kept", 1000));
    execFileSync("mount", ["-o", "remount,ro", place]);
    const known = await came(store.commit(put("r2", "a/u/kept", 10)));
    const fresh = await came(fileStore(place + "/other").commit(put("r2", "a/u/kept", 10)));
    const kept = (await fileStore(place + "/store").get(["a/u/kept"])).map((it) => [it.revision, it.value.length]);
    // In this case Node reports ENOENT although nothing is missing.
    if (fresh.cause === "ENOENT") fresh.cause = "EROFS";
    console.log(JSON.stringify({ known, fresh, kept }));`,
  );
  if (found === undefined) return;
  const readOnly = { code: "STORE_UNAVAILABLE", hint: true, cause: "EROFS", hasContent: false, hasPath: true };
  assert.deepEqual(found, { known: readOnly, fresh: readOnly, kept: [["r1", 1000]] });
});

// F-08
test("a process without free file handles gets a typed error, and the store works again when handles are free", async (t) => {
  const found = await inWorld(
    t,
    "ulimit -n 64",
    `${prelude}
    await store.commit(put("r1", "a/u/kept", 1000));
    const held = [];
    try { for (;;) held.push(fs.openSync("/dev/null")); } catch {}
    const without = [await came(store.commit(put("r2", "a/u/kept", 10))), await came(store.get(["a/u/kept"]))];
    for (const handle of held) fs.closeSync(handle);
    const kept = (await store.get(["a/u/kept"])).map((it) => [it.revision, it.value.length]);
    const after = await came(store.commit(put("r3", "a/u/kept", 10)));
    console.log(JSON.stringify({ without, kept, after }));`,
  );
  if (found === undefined) return;
  const none = { code: "STORE_UNAVAILABLE", hint: true, cause: "EMFILE", hasContent: false, hasPath: true };
  assert.deepEqual(found, { without: [none, none], kept: [["r1", 1000]], after: "ok" });
});

// F-08
test("a file where the store needs a folder is reported and not changed", async () => {
  const root = folder("blocked");
  fs.writeFileSync(path.join(root, "store"), "mine");
  const { code, hint } = await refused(fileStore(path.join(root, "store")).commit(putting("r1", ["a/u/x", "1"])));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.ok(hint);
  assert.equal(fs.readFileSync(path.join(root, "store"), "utf8"), "mine");
});

// F-09, I-12
test("for all ids of users and sessions, files stay below the folder and have plain names", async () => {
  const root = folder("ids");
  const agent = await createAgent({ name: "../../up", model: echo(), store: fileStore(path.join(root, "store")) });
  const ids = ["..", ".", "CON", "nul.txt", "a/../../b", "trailing.", "x".repeat(256), "C:\\x", "~", "__proto__"];
  for (const id of ids) await agent.call(`I am ${id}`, { userId: id, sessionId: id });
  for (const id of ids) {
    const said = (await agent.history({ userId: id, sessionId: id })).map((message) => textOf(message));
    assert.deepEqual(said, [`I am ${id}`, `to I am ${id}`]);
  }
  assert.deepEqual(fs.readdirSync(root), ["store"]);
  for (const file of filesBelow(root)) {
    for (const name of path.relative(root, file).split(path.sep))
      assert.match(name, /^(?!\.+$)[a-z0-9.-]{1,255}$/);
  }
});

// F-09
test("an invalid key never reaches the disk", async () => {
  const root = folder("keys");
  const store = fileStore(path.join(root, "store"));
  for (const key of ["../up/x", "a/../x", "a/u/..", "a/u/\0", "a/u/X", "a//x", "/etc/x", "a/u", `a/u/${"x".repeat(513)}`]) {
    assert.equal((await refused(store.commit(putting("r1", [key, "1"])))).code, "INPUT_INVALID", key);
    assert.equal((await refused(store.get([key]))).code, "INPUT_INVALID", key);
  }
  assert.equal((await refused(store.commit({ revision: "r1", put: [], remove: [], removePrefix: ["a/"] }))).code, "INPUT_INVALID");
  assert.equal((await refused(store.commit(putting("r1", ["a/u/x", "1"], ["a/v/x", "1"])))).code, "INPUT_INVALID");
  assert.deepEqual(fs.readdirSync(root), []);
});

// F-11
test("a symbolic link in the store is refused, and its target is neither read nor written", async () => {
  const plants = {
    "the agent's folder": (root, away) => fs.symlinkSync(away, path.join(root, "a")),
    "the user's folder": (root, away) => {
      fs.mkdirSync(path.join(root, "a"));
      fs.symlinkSync(away, path.join(root, "a", "u"));
    },
    "the generation": (root, away) => {
      fs.mkdirSync(path.join(root, "a", "u"), { recursive: true });
      fs.symlinkSync(away, path.join(root, "a", "u", "0"));
    },
    "a batch": (root, away) => {
      fs.mkdirSync(path.join(root, "a", "u", "0"), { recursive: true });
      fs.symlinkSync(path.join(away, "secret"), path.join(root, "a", "u", "0", "1"));
    },
  };
  for (const [what, plant] of Object.entries(plants)) {
    const [root, away] = [folder("linked"), folder("away")];
    fs.writeFileSync(path.join(away, "secret"), "secret");
    plant(root, away);
    const store = fileStore(root);
    for (const attempt of [store.get(["a/u/x"]), store.commit(putting("r1", ["a/u/x", "1"])), store.list("a/u/")]) {
      const { code, hint, message } = await refused(attempt);
      assert.equal(code, "STORE_UNAVAILABLE", what);
      assert.ok(hint && !message.includes("secret\n"), what);
    }
    assert.deepEqual(fs.readdirSync(away), ["secret"], what);
  }
});

// F-12, S-05
test("a file cut at any byte, or edited by hand, is STORE_CORRUPT, stays unchanged, and is never read in part", async () => {
  const root = quickFolder("edited");
  const first = fileStore(root);
  await first.commit(putting("r1", ["a/u/one", "1"], ["a/u/two", "2"]));
  await first.commit(putting("r2", ["a/u/two", "changed"], ["a/u/three", "3"]));
  const last = path.join(root, "a", "u", "0", "2");
  const whole = fs.readFileSync(last);
  const edits = Array.from({ length: whole.length }, (_, n) => whole.subarray(0, n));
  edits.push(Buffer.concat([Buffer.from("\ufeff"), whole]));
  edits.push(Buffer.from(whole.toString("latin1").replaceAll("\n", "\r\n"), "latin1"));
  edits.push(Buffer.from(whole.toString("latin1").replace("changed", "chanGed"), "latin1"));
  for (let at = 0; at < whole.length; at++) {
    const flipped = Buffer.from(whole);
    flipped[at] ^= 1;
    edits.push(flipped);
  }
  for (const edited of edits) {
    fs.writeFileSync(last, edited);
    const store = fileStore(root);
    const { code, hint, message } = await refused(store.list("a/u/"));
    assert.equal(code, "STORE_CORRUPT");
    assert.ok(hint && message.includes(last), message);
    assert.deepEqual(fs.readFileSync(last), edited, "its bytes were changed");
  }
  fs.writeFileSync(last, whole);
  const [one, two] = await fileStore(root).get(["a/u/one", "a/u/two"]);
  assert.deepEqual([text(one.value), text(two.value)], ["1", "changed"]);
});

// S-23
test("the journal is trimmed: files stay few, the store opens with all records, and old contents leave the disk", async () => {
  const root = quickFolder("trimmed");
  const [store, beside] = [fileStore(root), fileStore(root)];
  for (let n = 0; n < 900; n++) {
    const writer = n % 3 ? store : beside;
    const head = { key: "a/u/head", revision: n === 0 ? null : `r${n - 1}` };
    const batch = putting(`r${n}`, ["a/u/head", `head ${n}`], [`a/u/log/${n % 50}`, `entry ${n}`]);
    assert.equal(await writer.commit({ ...batch, expect: head }), "ok");
  }
  await Promise.all([store.close(), beside.close()]);
  const files = filesBelow(root);
  assert.ok(files.length < 600, `${files.length} files for 51 records`);
  assert.equal(fs.readdirSync(path.join(root, "a", "u")).length, 1, "old generations are removed");
  const fresh = fileStore(root);
  const listed = await fresh.list("a/u/");
  assert.equal(listed.length, 51);
  const entry = (n) => `entry ${850 + n}`;
  for (const { key, value } of listed.filter(({ key }) => key.includes("/log/")))
    assert.equal(text(value), entry(Number(key.split("/")[3])));
  await fresh.commit({ ...putting("gone"), removePrefix: ["a/u/log/"] });
  await fresh.close();
  assert.ok(!filesBelow(root).some((file) => fs.readFileSync(file).includes("entry ")));
});

// F-07, F-10
test("four stores that write at the same moment lose nothing, trims included, and leave no temporary file", async () => {
  const root = quickFolder("many");
  const stores = Array.from({ length: 4 }, () => fileStore(root));
  const write = async (store, who) => {
    let conflicts = 0;
    for (let n = 0; n < 80; n++) {
      await store.commit(putting(`${who}.${n}`, [`a/u/${who}/${n}`, "x"]));
      for (;;) {
        const [count] = await store.get(["a/u/count"]);
        const next = putting(`c${who}.${n}`, ["a/u/count", String(Number(count ? text(count.value) : 0) + 1)]);
        if ((await store.commit({ ...next, expect: { key: "a/u/count", revision: count?.revision ?? null } })) === "ok") break;
        conflicts += 1;
      }
    }
    return conflicts;
  };
  await Promise.all(stores.map(write));
  await Promise.all(stores.map((store) => store.close()));
  const fresh = fileStore(root);
  const [count] = await fresh.get(["a/u/count"]);
  assert.equal(text(count.value), "320");
  assert.equal((await fresh.list("a/u/")).length, 321);
  assert.deepEqual(filesBelow(root).filter((file) => path.basename(file).startsWith("_")), []);
});

test("F-07: two processes that write a thousand batches each lose none and leave no temporary file", async () => {
  const root = quickFolder("two");
  const file = path.join(await project(), "writes.mjs");
  fs.writeFileSync(
    file,
    `import { fileStore } from "lockgate/stores/node";
    const [, , root, who] = process.argv;
    const store = fileStore(root);
    const value = new TextEncoder().encode(who);
    for (let n = 0; n < 1_000; n++) await store.commit({ revision: who + n, put: [{ key: "a/u/" + who + "/" + n, value }], remove: [] });
    await store.close();`,
  );
  const ended = await Promise.all(["x", "y"].map((who) => capture(process.execPath, [file, root, who])));
  for (const { code, output } of ended) assert.equal(code, 0, output);
  const found = (await fileStore(root).list("a/u/")).map(({ key, value }) => `${key} ${text(value)}`);
  const written = ["x", "y"].flatMap((who) => Array.from({ length: 1_000 }, (_, n) => `a/u/${who}/${n} ${who}`));
  assert.deepEqual(found, written.sort());
  assert.deepEqual(filesBelow(root).filter((file) => path.basename(file).startsWith("_")), []);
});

// S-05
test("a missing batch is STORE_CORRUPT of the session that it changed, and the others are read", async () => {
  const numbers = (folder) => fs.readdirSync(folder).filter((name) => /^\d+$/.test(name)).length;
  const root = quickFolder("gap");
  const folder = path.join(root, "1.t.helper", "t.alice", "0");
  const [one, other] = ["one", "other"].map((sessionId) => ({ userId: "alice", sessionId }));
  const agent = await createAgent({ name: "helper", model: echo(), store: fileStore(root) });
  await agent.call("aside", other);
  const first = numbers(folder);
  for (const text of ["a", "b", "c"]) await agent.call(text, one);
  await agent.close();
  for (let n = first + 1; n < numbers(folder); n++) {
    fs.renameSync(path.join(folder, String(n)), path.join(root, "away"));
    const again = await createAgent({ name: "helper", model: echo(), store: fileStore(root) });
    for (const attempt of [again.history(one), again.call("d", one), again.exportSession(one), again.repairSession(one)])
      assert.equal((await refused(attempt)).code, "STORE_CORRUPT", `without ${n}`);
    assert.equal((await again.history(other)).length, 2, `without ${n}`);
    await again.close();
    fs.renameSync(path.join(root, "away"), path.join(folder, String(n)));
  }
  // The newest batch has a second name.
  fs.unlinkSync(path.join(folder, String(numbers(folder))));
  const again = await createAgent({ name: "helper", model: echo(), store: fileStore(root) });
  assert.equal((await again.history(one)).length, 6);
  await again.close();
});

// S-05
test("a folder of a user that is deleted is STORE_CORRUPT, also for a process that starts later, until its mark is removed", async () => {
  const root = quickFolder("gone");
  const slot = { userId: "alice", sessionId: "s" };
  const running = await createAgent({ name: "helper", model: echo(), store: fileStore(root) });
  await running.call("one", slot);
  fs.rmSync(path.join(root, "1.t.helper", "t.alice"), { recursive: true });
  const later = await createAgent({ name: "helper", model: echo(), store: fileStore(root) });
  for (const agent of [running, later])
    for (const attempt of [agent.history(slot), agent.call("two", slot), agent.getAgentState(slot)]) {
      const { code, hint } = await refused(attempt);
      assert.equal(code, "STORE_CORRUPT");
      assert.ok(hint.includes("t.alice.has"), hint);
    }
  assert.equal((await later.call("hello", { userId: "bob", sessionId: "s" })).text, "to hello");
  fs.unlinkSync(path.join(root, "1.t.helper", "t.alice.has"));
  const anew = await createAgent({ name: "helper", model: echo(), store: fileStore(root) });
  await anew.call("anew", slot);
  assert.equal((await anew.history(slot)).length, 2);
});

const inMemory = "/dev/shm";
test("storage() says whether the folder is on a disk", { skip: fs.existsSync(inMemory) ? false : "there is no file system in memory here" }, async () => {
  const reportOf = async (place) => (await createAgent({ name: "helper", model: echo(), store: fileStore(path.join(place, "sessions", "later")) })).storage();
  const report = await reportOf(folder("memory", inMemory));
  assert.equal(report.durability, "not-durable");
  assert.match(report.warnings.join(), /tmpfs/);
  const onDisk = folder("disk", inRoot("target"));
  assert.equal((await reportOf(onDisk)).durability, "durable");
});
