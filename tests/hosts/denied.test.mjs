// Pages that the browser denies something: storage and locks in a sandboxed frame, or wasm under a policy.
import assert from "node:assert/strict";
import { story, within, withinSandbox } from "./support/pages.mjs";

// B-15
story("B-15: a sandboxed frame says at once that nothing can be stored, and memory works there", async ({ open }) => {
  const told = await withinSandbox(await open(), async ({ createAgent, indexedDbStore, localStorageStore, memoryStore, echo }) => {
    const told = {};
    const failure = (error) => ({ code: error.code, message: error.message, hint: error.hint });
    const stores = { default: undefined, "IndexedDB": indexedDbStore(), localStorage: localStorageStore(), memory: memoryStore() };
    for (const [name, store] of Object.entries(stores)) {
      const agent = await createAgent({ name: "helper", model: echo(), ...(store && { store }) });
      const slot = { sessionId: "s", userId: "alice" };
      const call = agent.stream("one", slot);
      const events = [];
      let error = null;
      try {
        for await (const event of call) events.push(event);
      } catch (thrown) {
        error = failure(thrown);
      }
      const methods = { history: () => agent.history(slot), list: () => agent.listSessions("alice"), rename: () => agent.renameSession(slot, "x"), delete: () => agent.deleteSession(slot), attach: () => agent.attach(slot), interrupt: () => agent.interrupt(slot) };
      const codes = {};
      for (const [method, work] of Object.entries(methods)) codes[method] = await work().then(() => "ok", ({ code, hint }) => `${code} ${hint ?? ""}`);
      const warned = events.filter(({ type, code }) => type === "warning" && code === "storage").map(({ message }) => message);
      told[name] = { error, warned, codes, report: await agent.storage(), text: events.at(-1)?.reply?.text };
      await agent.close();
    }
    // Agents with one store take turns in a session here too, without Web Locks.
    const shared = memoryStore();
    const agents = await Promise.all([0, 1].map(() => createAgent({ name: "helper", model: echo(), store: shared })));
    await Promise.all(Array.from({ length: 20 }, (_, n) => agents[n % 2].call(`n${n}`, { sessionId: "turns" })));
    told.turns = (await agents[0].history({ sessionId: "turns" })).length;
    return told;
  });
  for (const name of ["default", "IndexedDB", "localStorage"]) {
    const { error, warned, codes, report } = told[name];
    assert.equal(error.code, "STORE_UNAVAILABLE", `${name}: ${JSON.stringify(error)}`);
    assert.match(error.hint, /memoryStore\(\)/);
    assert.equal(warned.length, 1, `${name}: ${JSON.stringify(warned)}`);
    assert.match(warned[0], /denies this page its storage.*memoryStore\(\)/);
    assert.deepEqual([report.durability, report.crossTab, report.warnings], ["not-durable", false, warned]);
    for (const [method, code] of Object.entries(codes)) {
      if (method === "attach" || method === "interrupt") assert.equal(code, "ok", `${name} ${method}`);
      else assert.match(code, /^STORE_UNAVAILABLE .*memoryStore\(\)/, `${name} ${method}`);
    }
  }
  assert.deepEqual([told.memory.text, told.memory.report.durability], ["you said one", "memory-only"]);
  assert.equal(told.turns, 40);
});

// B-15
story("B-15: where storage is allowed, nothing is said about a denial", async ({ open }) => {
  const report = await within(await open(), async ({ createAgent, echo }) => {
    const agent = await createAgent({ name: "helper", model: echo() });
    await agent.call("one", { sessionId: "s" });
    return agent.storage();
  });
  assert.equal(report.store, 'IndexedDB "lockgate"');
  assert.notEqual(report.durability, "not-durable");
  assert.doesNotMatch(report.warnings.join(), /denies/);
});

// B-15, V-04
story("B-15: localStorage that a page loses while it waits for its lock is an error of that operation, and no crash", async ({ open }) => {
  const told = await within(await open(), async ({ createAgent, localStorageStore, memoryStore, echo, batch, rejection }) => {
    const told = [];
    const store = localStorageStore("app");
    await store.commit(batch("r1", { a: "1" }));
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const other = await createAgent({ name: "helper", model: echo("still "), store: memoryStore() });
    // A closing page has no localStorage any more, or may not read it, but its code still runs for a while.
    const losses = [() => null, () => undefined, () => { throw new DOMException("the page is closing", "SecurityError"); }];
    const own = Object.getOwnPropertyDescriptor(window, "localStorage");
    for (const lose of losses) {
      const { held } = await navigator.locks.query();
      const name = "lockgate:t.app";
      let free;
      const taken = new Promise((resolve) => void navigator.locks.request(name, () => (resolve(), new Promise((done) => (free = done)))));
      await taken;
      const waiting = [store.get(["a"]), store.commit(batch("r2", { a: "2" })), agent.call("one", { sessionId: "s" })].map(rejection);
      while ((await navigator.locks.query()).pending.filter((lock) => lock.name === name).length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      Object.defineProperty(window, "localStorage", { get: lose, configurable: true });
      free();
      told.push(await Promise.all(waiting));
      if (own === undefined) delete window.localStorage;
      else Object.defineProperty(window, "localStorage", own);
      told.push({ still: (await other.call("here", { sessionId: "s" })).text, kept: new TextDecoder().decode((await store.get(["a"]))[0].value), held: held.length });
    }
    return told;
  });
  for (const outcome of told) {
    if (Array.isArray(outcome)) for (const { code, message } of outcome) assert.equal(code, "STORE_UNAVAILABLE", message);
    else assert.deepEqual([outcome.still, outcome.kept], ["still here", "1"]);
  }
});

const PAGE = '<!doctype html><link rel="icon" href="data:,"><title></title><script type="module" src="/main.js"></script>';

/** What a page with this policy says about its agent. The result is in the title, because a policy may forbid everything else. */
async function under(policy, { open, pages }, entry = "browser.js") {
  pages["/guarded"] = { headers: { "content-security-policy": policy }, body: PAGE };
  const source = `
    import { createAgent, demoModel, memoryStore } from "/dist/entry/${entry}";
    try {
      const agent = await createAgent({ name: "helper", model: demoModel(), store: memoryStore() });
      document.title = JSON.stringify({ text: (await agent.call("Hello", { sessionId: "s" })).text });
    } catch ({ name, code, message, hint, cause }) {
      document.title = JSON.stringify({ name, code, message, hint, cause: String(cause) });
    }`;
  pages["/main.js"] = { headers: { "content-type": "text/javascript" }, body: source };
  const page = await open("/guarded");
  return JSON.parse(await page.evaluate(async () => {
    while (document.title === "") await new Promise((resolve) => setTimeout(resolve, 20));
    return document.title;
  }));
}

for (const entry of ["browser.js", "inline.js"]) {
  // V-12
  story(`V-12: under a policy that forbids wasm every browser names 'wasm-unsafe-eval', with ${entry}`, async (host) => {
    const { name, code, message, hint, cause } = await under("script-src 'self'", host, entry);
    assert.deepEqual([name, code], ["LockgateError", "ENGINE_LOAD"], message);
    assert.match(message, /wasm is forbidden here/);
    assert.match(hint, /'wasm-unsafe-eval'/);
    assert.match(cause, /CSP|Content Security Policy/i);
  });
}

// V-12
story("V-12: under a policy with 'wasm-unsafe-eval' every browser works", async (host) => {
  const { text, message } = await under("default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'", host);
  assert.match(String(text), /Hello/, message);
});
