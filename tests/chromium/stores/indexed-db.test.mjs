// IndexedDB under real conditions: full, blocked, closed, cleared, forbidden. Nothing is lost silently.
import assert from "node:assert/strict";
import { devtools, story, within } from "../support/browser.mjs";

// B-01, B-02
story("all requests of a transaction are sent at once", async ({ page }) => {
  const late = await within(page, async ({ createAgent, indexedDbStore, echo, replaced }) => {
    let isOpen = false;
    const late = [];
    replaced(IDBDatabase.prototype, "transaction", function (original) {
      isOpen = true;
      queueMicrotask(() => (isOpen = false));
      return original();
    });
    for (const name of ["get", "getAll", "getAllKeys", "put", "delete"]) {
      replaced(IDBObjectStore.prototype, name, function (original) {
        if (!isOpen) late.push(name);
        return original();
      });
    }
    const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore() });
    for (const text of ["one", "x".repeat(1_000_000), "three"]) await agent.call(text, { sessionId: "s1" });
    await agent.listSessions(null);
    await agent.deleteSession({ sessionId: "s1" });
    return late;
  });
  assert.deepEqual(late, []);
});

// B-03
story("a page that upgrades the database does not have to wait", async ({ page, open }) => {
  const agent = async ({ createAgent, indexedDbStore, echo }) => {
    globalThis.agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore("app") });
    await globalThis.agent.call("hello", { sessionId: "s1" });
  };
  await within(page, agent);
  const other = await open();
  const blocked = await within(other, async ({ done }) => {
    const request = indexedDB.open("app", 2);
    let blocked = false;
    request.onblocked = () => (blocked = true);
    (await done(request)).close();
    return blocked;
  });
  assert.equal(blocked, false);
  // B-14
  const refused = await within(page, ({ rejection }) =>
    rejection(globalThis.agent.call("again", { sessionId: "s1" })),
  );
  assert.equal(refused.code, "STATE_VERSION");
  assert.match(refused.hint, /reload/);
});

// B-04
story("a database blocked by another page is STORE_BLOCKED, and works again later", async ({ page, open }) => {
  const holder = await open();
  await within(holder, async ({ indexedDbStore, batch, done }) => {
    await indexedDbStore("app").commit(batch("r1", { head: "kept" }));
    globalThis.held = await done(indexedDB.open("app"));
    // The deletion waits for the page that keeps the database open, and every later opening waits for the deletion.
    globalThis.deleting = done(indexedDB.deleteDatabase("app"));
  });
  const refused = await within(page, ({ indexedDbStore, rejection }) => {
    globalThis.store = indexedDbStore("app");
    return rejection(globalThis.store.get(["head"]));
  });
  assert.equal(refused.code, "STORE_BLOCKED");
  assert.equal(refused.retryable, true);
  assert.match(refused.hint, /close other tabs/);
  await within(holder, () => (globalThis.held.close(), globalThis.deleting));
  const after = await within(page, async ({ batch, textUnder }) => {
    await globalThis.store.commit(batch("r2", { head: "new" }));
    return textUnder(globalThis.store, "head");
  });
  assert.equal(after, "new");
});

// B-05
story("a connection that the browser has closed is opened again, once", async ({ page }) => {
  const told = await within(page, async ({ createAgent, indexedDbStore, echo, replaced, texts, rejection }) => {
    const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore() });
    const slot = { sessionId: "s1" };
    await agent.call("one", slot);
    let n = 0;
    const closing = (times) =>
      replaced(IDBDatabase.prototype, "transaction", function (original) {
        if (n++ < times) throw new DOMException("The database connection is closing.", "InvalidStateError");
        return original();
      });
    let restore = closing(1);
    await agent.call("two", slot);
    restore();
    n = 0;
    restore = closing(Infinity);
    const refused = await rejection(agent.call("three", slot));
    restore();
    await agent.call("four", slot);
    return { refused, texts: await texts(agent, slot) };
  });
  assert.equal(told.refused.code, "STORE_UNAVAILABLE");
  assert.deepEqual(told.texts.filter((text) => !text.startsWith("you")), ["one", "two", "four"]);
});

// B-06, B-07
story("if the browser loses its own database, the store tries again and then reports it", async ({ page }) => {
  const told = await within(page, async ({ indexedDbStore, batch, textUnder, rejection }) => {
    const store = indexedDbStore("app");
    await store.commit(batch("r1", { head: "kept" }));
    const open = IDBFactory.prototype.open;
    let n = 0;
    const failing = (times, message) => {
      n = 0;
      IDBFactory.prototype.open = function (...args) {
        if (n++ >= times) return open.apply(this, args);
        const request = { error: new DOMException(message, "UnknownError"), onerror: null };
        queueMicrotask(() => request.onerror?.({ type: "error" }));
        return request;
      };
    };
    await store.close();
    failing(2, "Connection to Indexed Database server lost. Refresh the page to try again");
    const found = await textUnder(store, "head");
    const tries = n;
    await store.close();
    failing(Infinity, "Internal error opening backing store for indexedDB.open.");
    const refused = await rejection(store.get(["head"]));
    IDBFactory.prototype.open = open;
    return { found, tries, refused, after: await textUnder(store, "head") };
  });
  assert.deepEqual([told.found, told.tries, told.after], ["kept", 3, "kept"]);
  assert.equal(told.refused.code, "STORE_UNAVAILABLE");
  assert.match(told.refused.message, /backing store/);
  assert.match(told.refused.hint, /nothing was deleted/);
});

// B-08
story("a full disk refuses a turn before the model is asked, and nothing is lost", async ({ page, origin }) => {
  const cdp = await devtools(page);
  const ask = (text) =>
    within(
      page,
      async ({ createAgent, indexedDbStore, echo, rejection, texts, noise }, text) => {
        globalThis.agent ??= await createAgent({ name: "helper", model: echo(), store: indexedDbStore() });
        const slot = { sessionId: "s1" };
        const saying = globalThis.agent.call(text ?? noise(6_000_000), slot);
        const answered = await saying.then(() => null, () => rejection(saying));
        return { answered, texts: (await texts(globalThis.agent, slot)).map((it) => it.length) };
      },
      text,
    );
  await cdp.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1_000_000 });
  assert.deepEqual((await ask("one")).texts, [3, 12]);
  const { answered, texts } = await ask(null);
  assert.equal(answered?.code, "STORE_QUOTA");
  assert.match(answered.hint, /free space/);
  assert.deepEqual(texts, [3, 12]);
  await cdp.send("Storage.overrideQuotaForOrigin", { origin });
  assert.deepEqual((await ask("two")).texts, [3, 12, 3, 12]);
});

story("B-08: if the disk is full when the answer is saved, the error has the answer, and the next call saves it", async ({ page, origin }) => {
  const cdp = await devtools(page);
  await cdp.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 1_000_000 });
  const refused = await within(page, async ({ createAgent, indexedDbStore, customModel, noise }) => {
    const answers = [noise(6_000_000), "short"];
    const model = customModel({
      id: "long",
      async *generate() {
        yield { type: "text", text: answers.shift() };
      },
    });
    globalThis.agent = await createAgent({ name: "helper", model, store: indexedDbStore() });
    const plain = ({ code, partial }) => ({ code, partial: partial?.content[0].text.length });
    return globalThis.agent.call("one", { sessionId: "s1" }).then(() => "saved", plain);
  });
  assert.deepEqual(refused, { code: "STORE_QUOTA", partial: 6_000_000 });
  await cdp.send("Storage.overrideQuotaForOrigin", { origin });
  const lengths = await within(page, async ({ texts }) => {
    await globalThis.agent.call("two", { sessionId: "s1" });
    return (await texts(globalThis.agent, { sessionId: "s1" })).map((text) => text.length);
  });
  assert.deepEqual(lengths, [3, 6_000_000, 3, 5]);
});

// B-16, B-09
story("clearing the site data during a turn ends the turn with an error, never with a false answer", async ({ page, origin }) => {
  const cdp = await devtools(page);
  await within(page, async ({ createAgent, indexedDbStore, customModel }) => {
    let go;
    const gate = new Promise((resolve) => (go = resolve));
    globalThis.go = go;
    const asked = new Promise((resolve) => (globalThis.tellAsked = resolve));
    const model = customModel({
      id: "slow",
      async *generate() {
        globalThis.tellAsked();
        await gate;
        yield { type: "text", text: "too late" };
      },
    });
    globalThis.agent = await createAgent({ name: "helper", model, store: indexedDbStore() });
    globalThis.call = globalThis.agent.call("one", { sessionId: "s1" });
    globalThis.call.catch(() => {});
    await asked;
  });
  await cdp.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
  const { ended, after } = await within(page, async ({ rejection, texts }) => {
    globalThis.go();
    const ended = await rejection(globalThis.call);
    const reply = await globalThis.agent.call("two", { sessionId: "s1" });
    return { ended, after: [reply.text, ...(await texts(globalThis.agent, { sessionId: "s1" }))] };
  });
  assert.ok(["SUPERSEDED", "STORE_UNAVAILABLE"].includes(ended.code), ended.code);
  assert.deepEqual(after, ["too late", "two", "too late"]);
});

// B-11
story("durability is strict unless the user says relaxed", async ({ page }) => {
  const asked = await within(page, async ({ indexedDbStore, batch, replaced }) => {
    const asked = [];
    replaced(IDBDatabase.prototype, "transaction", function (original, _names, mode, options) {
      if (mode === "readwrite") asked.push(options.durability);
      return original();
    });
    await indexedDbStore("one").commit(batch("r1", { head: "1" }));
    await indexedDbStore("two", { durability: "relaxed" }).commit(batch("r1", { head: "1" }));
    return asked;
  });
  assert.deepEqual(asked, ["strict", "relaxed"]);
});

// B-13
story("only bytes and text are stored", async ({ page }) => {
  const kinds = await within(page, async ({ createAgent, indexedDbStore, echo, done }) => {
    const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore("app") });
    await agent.call("one", { sessionId: "s1", callId: "c1" });
    const database = await done(indexedDB.open("app"));
    const records = await done(database.transaction("records").objectStore("records").getAll());
    database.close();
    return records.map(({ value, revision, ...rest }) =>
      [value.constructor.name, typeof revision, Object.keys(rest).length].join(),
    );
  });
  assert.ok(kinds.length >= 4);
  assert.deepEqual([...new Set(kinds)], ["Uint8Array,string,0"]);
});

// B-10, B-09
story("the report says that the browser may delete the data, until the browser promises to keep them", async ({ page, context, origin }) => {
  const report = (persist) =>
    within(
      page,
      async ({ createAgent, indexedDbStore, echo }, persist) => {
        const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore("app") });
        const relaxed = await createAgent({ name: "relaxed", model: echo(), store: indexedDbStore("app", { durability: "relaxed" }) });
        const warnings = [];
        for (const text of ["one", "two"]) {
          for await (const event of agent.stream(text, { sessionId: "s1" }))
            if (event.type === "warning") warnings.push(event.code);
        }
        if (persist) await navigator.storage.persist();
        return { warnings, report: await agent.storage(), relaxed: await relaxed.storage() };
      },
      persist,
    );
  const before = await report(false);
  assert.equal(before.report.store, 'IndexedDB "app"');
  assert.equal(before.report.durability, "may-be-evicted");
  assert.equal(before.report.crossTab, true);
  assert.ok(before.report.usage > 0 && before.report.quota > before.report.usage);
  assert.match(before.report.warnings.join(), /Safari.*seven days/);
  assert.deepEqual(before.warnings, ["storage"]);
  const cdp = await context.browser().newBrowserCDPSession();
  const { targetInfos } = await cdp.send("Target.getTargets");
  const { browserContextId } = targetInfos.find(({ url }) => url.startsWith(origin));
  const permission = { name: "persistent-storage" };
  await cdp.send("Browser.setPermission", { permission, setting: "granted", origin, browserContextId });
  assert.equal(before.relaxed.durability, "may-be-evicted");
  assert.match(before.relaxed.warnings.join(), /power cut/);
  const { report: kept, relaxed } = await report(true);
  assert.equal(relaxed.durability, "not-durable");
  assert.equal(kept.durability, "durable");
  assert.deepEqual(kept.warnings, []);
});

// B-15
story("a policy that forbids storage is reported, and memory still works", async ({ page }) => {
  const frame = await sandboxed(page);
  const told = await within(frame, async ({ createAgent, indexedDbStore, localStorageStore, memoryStore, echo, rejection }) => {
    const slot = { sessionId: "s1" };
    const attempt = async (store) => {
      const agent = await createAgent({ name: "helper", model: echo(), store, crossTab: false });
      return rejection(agent.call("one", slot));
    };
    const [database, local] = [await attempt(indexedDbStore()), await attempt(localStorageStore())];
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
    return { database, local, reply: (await agent.call("one", slot)).text, report: await agent.storage() };
  });
  for (const refused of [told.database, told.local]) {
    assert.equal(refused.code, "STORE_UNAVAILABLE");
    assert.match(refused.hint, /memoryStore/);
  }
  assert.equal(told.reply, "you said one");
  assert.equal(told.report.durability, "memory-only");
  assert.match(told.report.warnings.join(), /gone when this page/);
});

story("a closed agent closes its database", async ({ page }) => {
  const open = await within(page, async ({ createAgent, indexedDbStore, echo, replaced }) => {
    let open = 0;
    replaced(IDBDatabase.prototype, "close", function (original) {
      open -= 1;
      return original();
    });
    const store = indexedDbStore("app");
    const agent = await createAgent({ name: "helper", model: echo(), store });
    await agent.call("one", { sessionId: "s1" });
    await store.get(["any"]);
    open += 2;
    const before = open;
    await agent.close();
    const between = open;
    await store.close();
    return [before, between, open];
  });
  assert.deepEqual(open, [2, 1, 0]);
});

/** A frame with an opaque origin. */
async function sandboxed(page) {
  await page.evaluate(() => {
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    frame.src = "/";
    document.body.append(frame);
    return new Promise((resolve) => (frame.onload = resolve));
  });
  return page.frames().find((frame) => frame !== page.mainFrame());
}
