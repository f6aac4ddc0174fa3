// localStorage as a store: atomic through a journal, safe across tabs through a lock, and with errors for the rest.
import assert from "node:assert/strict";
import { story, within } from "../support/browser.mjs";

// F-01
story("localStorage says that a killed browser loses its last writes", async ({ page }) => {
  const { capabilities, report, warnings } = await within(page, async ({ createAgent, localStorageStore, echo }) => {
    const store = localStorageStore("app");
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const warnings = [];
    for await (const event of agent.stream("one", { sessionId: "s1" }))
      if (event.type === "warning") warnings.push(event.message);
    return { capabilities: store.capabilities, report: await agent.storage(), warnings };
  });
  assert.equal(capabilities.durability, "none");
  assert.equal(report.durability, "may-be-evicted");
  assert.equal(report.store, 'localStorage "app"');
  assert.match(report.warnings.join(), /browser is killed/);
  assert.deepEqual(warnings, report.warnings);
});

story("a session in localStorage is kept after a reload, under keys of its own", async ({ page }) => {
  const tell = async ({ createAgent, localStorageStore, echo, texts }, say) => {
    localStorage.setItem("somebody-else", "kept");
    const slot = { sessionId: "s1", userId: "ålice" };
    const agentOf = (name) => createAgent({ name: "helper", model: echo(), store: localStorageStore(name) });
    const agent = await agentOf("app");
    await agent.call(say, slot);
    const others = await texts(await agentOf("ap"), slot);
    return { texts: await texts(agent, slot), others, listed: (await agent.listSessions("ålice")).length };
  };
  await within(page, tell, "one 😀");
  await page.reload();
  const told = await within(page, tell, "two");
  assert.deepEqual(told.texts, ["one 😀", "you said one 😀", "two", "you said two"]);
  assert.deepEqual([told.others, told.listed], [[], 1]);
  const names = await page.evaluate(() => Object.keys(localStorage));
  assert.ok(names.every((name) => name === "somebody-else" || name.startsWith("lockgate:t.app")));
});

// F-02
story("a full localStorage refuses the whole batch and changes nothing", async ({ page }) => {
  const told = await within(page, async ({ localStorageStore, batch, rejection, textUnder }) => {
    const store = localStorageStore("app");
    await store.commit(batch("r1", { a: "old a", b: "old b" }));
    // Fills all but a few thousand units, at the end one by one.
    for (let n = 1 << 22; n > 0; n >>= 1) {
      try {
        localStorage.setItem("fill", (localStorage.getItem("fill") ?? "") + "x".repeat(n));
      } catch {
        // If it does not fit, try half of it.
      }
    }
    localStorage.setItem("fill", localStorage.getItem("fill").slice(9_000));
    const before = JSON.stringify(localStorage);
    // The journal of this batch fits, but not the journal together with the records.
    const large = batch("r2", { a: "x".repeat(3_000), c: "x".repeat(3_000) }, { remove: ["b"] });
    const refused = await rejection(store.commit(large));
    const same = JSON.stringify(localStorage) === before;
    const small = await store.commit(batch("r3", { a: "x".repeat(3_000) }, { remove: ["b"] }));
    localStorage.removeItem("fill");
    return { refused, same, small, a: (await textUnder(store, "a")).length, b: await textUnder(store, "b") };
  });
  assert.equal(told.refused.code, "STORE_QUOTA");
  assert.match(told.refused.hint, /indexedDbStore/);
  assert.ok(told.same, "a refused batch changed something");
  assert.deepEqual([told.small, told.a, told.b], ["ok", 3_000, null]);
});

// F-02
story("a session too large for localStorage is refused before the model is asked", async ({ page }) => {
  const told = await within(page, async ({ createAgent, localStorageStore, customModel, rejection, texts }) => {
    let asked = 0;
    const model = customModel({
      id: "counting",
      async *generate() {
        asked += 1;
        yield { type: "text", text: "short" };
      },
    });
    const agent = await createAgent({ name: "helper", model, store: localStorageStore() });
    const slot = { sessionId: "s1" };
    await agent.call("one", slot);
    const refused = await rejection(agent.call("x".repeat(6_000_000), slot));
    await agent.call("two", slot);
    return { refused, asked, texts: await texts(agent, slot) };
  });
  assert.equal(told.refused.code, "STORE_QUOTA");
  assert.equal(told.asked, 2);
  assert.deepEqual(told.texts, ["one", "short", "two", "short"]);
});

// F-03
story("tabs that write to localStorage at once lose nothing", async ({ page, open }) => {
  const tabs = [page, await open(), await open()];
  const n = 40;
  const write = (tab, name) =>
    within(
      tab,
      async ({ localStorageStore, batch, textUnder }, { name, n }) => {
        const store = localStorageStore("app");
        for (let done = 0; done < n; ) {
          const [head] = await store.get(["head"]);
          const count = head ? Number(new TextDecoder().decode(head.value)) : 0;
          const expect = { key: "head", revision: head?.revision ?? null };
          const put = { head: String(count + 1), [`log/${name}.${done}`]: String(count) };
          if ((await store.commit(batch(`${name}.${done}`, put, { expect }))) === "ok") done += 1;
        }
        return textUnder(store, "head");
      },
      { name, n },
    );
  await Promise.all(tabs.map((tab, index) => write(tab, `tab${index}`)));
  const { head, log } = await within(page, async ({ localStorageStore, textUnder }) => {
    const store = localStorageStore("app");
    const log = await store.list("log/");
    return { head: await textUnder(store, "head"), log: log.map(({ value }) => Number(new TextDecoder().decode(value))) };
  });
  assert.equal(head, String(tabs.length * n));
  assert.deepEqual(log.sort((a, b) => a - b), Array.from({ length: tabs.length * n }, (_, index) => index));
});

// F-03
story("three tabs use one session in localStorage, and every turn is kept", async ({ page, open }) => {
  const tabs = [page, await open(), await open()];
  const talk = (tab, name) =>
    within(
      tab,
      async ({ createAgent, localStorageStore, echo }, name) => {
        const agent = await createAgent({ name: "helper", model: echo("to "), store: localStorageStore("app") });
        for (let n = 0; n < 10; n++) await agent.call(`${name}.${n}`, { sessionId: "s1" });
      },
      name,
    );
  await Promise.all(tabs.map((tab, index) => talk(tab, `tab${index}`)));
  const told = await within(page, async ({ createAgent, localStorageStore, echo, texts }) =>
    texts(await createAgent({ name: "helper", model: echo(), store: localStorageStore("app") }), { sessionId: "s1" }),
  );
  assert.equal(told.length, 60);
  for (const [index, text] of told.entries()) if (index % 2 === 1) assert.equal(text, `to ${told[index - 1]}`);
  for (const name of ["tab0", "tab1", "tab2"]) {
    const own = told.filter((text) => text.startsWith(name));
    assert.deepEqual(own, Array.from({ length: 10 }, (_, n) => `${name}.${n}`));
  }
});

// S-12: a crash between any two writes to localStorage.
story("a batch that a crash interrupts at any point is stored completely or not at all", async ({ page }) => {
  const outcomes = await within(page, async ({ localStorageStore, batch, replaced }) => {
    const outcomes = [];
    for (let cut = 0; cut < 8; cut++) {
      const name = `app${cut}`;
      const before = localStorageStore(name);
      await before.commit(batch("r1", { a: "1", b: "1", "c/x": "1" }));
      // From this write on nothing is stored, as if the browser had died.
      let n = 0;
      const dies = (name) =>
        replaced(Storage.prototype, name, function (original) {
          if (n++ < cut) return original();
          throw new DOMException("the browser has died", "AbortError");
        });
      const restore = [dies("setItem"), dies("removeItem")];
      const change = batch("r2", { a: "2", d: "2" }, { remove: ["b"], removePrefix: ["c/"] });
      await before.commit(change).catch(() => {});
      restore.forEach((it) => it());
      const found = await localStorageStore(name).list("");
      outcomes.push(found.map(({ key, value, revision }) => `${key}=${new TextDecoder().decode(value)}@${revision}`).join(" "));
    }
    return outcomes;
  });
  const [old, made] = ["a=1@r1 b=1@r1 c/x=1@r1", "a=2@r2 d=2@r2"];
  assert.deepEqual([...new Set(outcomes)], [old, made]);
  assert.ok(outcomes.indexOf(made) > 0 && outcomes.indexOf(made) < 3, "the journal decides");
});

story("a cleared storage is empty and works", async ({ page }) => {
  const found = await within(page, async ({ localStorageStore, batch, textUnder }) => {
    const store = localStorageStore("app");
    await store.commit(batch("r1", { a: "1" }));
    localStorage.clear();
    const gone = await textUnder(store, "a");
    await store.commit(batch("r2", { a: "2" }));
    return [gone, await textUnder(store, "a")];
  });
  assert.deepEqual(found, [null, "2"]);
});

story("bytes that are not text are kept as they are", async ({ page }) => {
  const same = await within(page, async ({ localStorageStore }) => {
    const store = localStorageStore("app");
    const value = Uint8Array.from({ length: 256 }, (_, index) => index);
    await store.commit({ revision: "r1", put: [{ key: "a", value }], remove: [] });
    const [found] = await localStorageStore("app").get(["a"]);
    return found.value.join() === value.join();
  });
  assert.ok(same);
});

story("the keys are listed again only after another tab has changed the store", async ({ page, open }) => {
  const other = await open();
  const looks = await within(page, async ({ localStorageStore, batch, replaced }) => {
    globalThis.store = localStorageStore("app");
    await globalThis.store.commit(batch("r1", { a: "1", b: "1" }));
    globalThis.looks = 0;
    replaced(Storage.prototype, "key", function (original) {
      globalThis.looks += 1;
      return original();
    });
    await globalThis.store.commit(batch("r2", { c: "1" }, { remove: ["a"] }));
    const listed = await globalThis.store.list("");
    return { keys: listed.map(({ key }) => key), n: globalThis.looks };
  });
  assert.deepEqual(looks, { keys: ["b", "c"], n: 0 });
  await within(other, ({ localStorageStore, batch }) => localStorageStore("app").commit(batch("r3", { d: "1" })));
  const after = await within(page, async () => {
    const listed = await globalThis.store.list("");
    return { keys: listed.map(({ key }) => key), looked: globalThis.looks > 0 };
  });
  assert.deepEqual(after, { keys: ["b", "c", "d"], looked: true });
});

// G-11, F-03
story(
  "without Web Locks localStorage is refused, unless there is only one tab",
  async ({ page }) => {
    const told = await within(page, async ({ createAgent, localStorageStore, indexedDbStore, echo, rejection }) => {
      const options = { name: "helper", model: echo(), store: localStorageStore() };
      const refused = await rejection(createAgent(options));
      const alone = await createAgent({ ...options, crossTab: false });
      const reply = await alone.call("one", { sessionId: "s1" });
      const database = await createAgent({ ...options, store: indexedDbStore() });
      const reports = [await database.storage(), await alone.storage()];
      return { locks: "locks" in navigator, refused, reply: reply.text, reports };
    });
    assert.equal(told.locks, false);
    assert.equal(told.refused.code, "OPTIONS");
    assert.match(told.refused.hint, /indexedDbStore\(\).*crossTab: false/);
    assert.equal(told.reply, "you said one");
    assert.deepEqual(told.reports.map(({ crossTab }) => crossTab), [true, false]);
    assert.match(told.reports[0].warnings.join(), /no Web Locks/);
    assert.match(told.reports[1].warnings.join(), /do not wait for each other/);
  },
  { origin: "insecure" },
);

story("localStorage in a worker is refused with an error", async ({ page }) => {
  const refused = await page.evaluate(async () => {
    const source = `
      const { localStorageStore } = await import(${JSON.stringify(`${location.origin}/dist/entry/browser.js`)});
      const { code, hint } = await localStorageStore().get(["a"]).catch((error) => error);
      postMessage({ code, hint });`;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(url, { type: "module" });
    return new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
  });
  assert.equal(refused.code, "STORE_UNAVAILABLE");
  assert.match(refused.hint, /indexedDbStore/);
});
