// Stores that users write: slow stores, broken stores, and stores that fail half-way.
import { story } from "../support/project.mjs";

story(
  "a store written by a user keeps every turn, even if it is slow",
  async ({ createAgent, echo, mapStore, lines, assert }) => {
    const store = mapStore();
    const agent = await createAgent({ name: "helper", model: echo("to "), store });
    const slots = ["s1", "s2"].map((sessionId) => ({ sessionId, userId: "alice" }));
    const calls = Array.from({ length: 20 }, (_, n) => agent.call(`q${n}`, slots[n % 2]));
    await Promise.all(calls);
    for (const [index, slot] of slots.entries()) {
      const questions = Array.from({ length: 10 }, (_, n) => `q${2 * n + index}`);
      const said = questions.flatMap((it) => [`user: ${it}`, `assistant: to ${it}`]);
      assert.deepEqual(lines(await agent.history(slot)), said);
    }
    const listed = (await agent.listSessions("alice")).map(({ sessionId }) => sessionId);
    assert.deepEqual(listed.sort(), ["s1", "s2"]);
    await agent.deleteSession(slots[0]);
    assert.deepEqual(await agent.history(slots[0]), []);
    assert.deepEqual((await agent.listSessions("alice")).length, 1);
  },
);

story(
  "keys are made of safe characters only, and values are JSON",
  async ({ createAgent, echo, memoryStore, watched, assert }) => {
    const keys = new Set();
    const inner = memoryStore();
    const around = {
      commit(batch, next) {
        for (const { key, value } of batch.put) {
          keys.add(key);
          JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(value));
        }
        return next();
      },
    };
    const { store } = watched(around, inner);
    const agent = await createAgent({ name: "Ägent/..", model: echo(), store });
    for (const sessionId of ["..", "a/b", "😀", "x".repeat(256), "ÀÉ", "%2e"]) {
      await agent.call("hello", { sessionId, userId: sessionId, callId: sessionId });
    }
    assert.ok(keys.size > 12);
    for (const key of keys) {
      assert.match(key, /^[a-z0-9.-]+(\/[a-z0-9.-]+)*$/);
      assert.ok(
        key.length <= 512 && !key.split("/").some((part) => part === "." || part === ".."),
        key,
      );
    }
  },
);

story(
  "a call writes little, even in a long session",
  async ({ createAgent, echo, watched, assert }) => {
    let bytes = 0;
    const around = {
      commit(batch, next) {
        bytes += batch.put.reduce((sum, { value }) => sum + value.length, 0);
        return next();
      },
    };
    const { store } = watched(around);
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const sizes = [];
    for (let n = 0; n < 300; n++) {
      // The index that is written after a reply does not belong to the call.
      await agent.drain();
      bytes = 0;
      await agent.call("hello again", { sessionId: "s" });
      sizes.push(bytes);
    }
    assert.ok(
      sizes[299] < 1.2 * sizes[9],
      `${sizes[9]} bytes for the tenth call, ${sizes[299]} for the last`,
    );
  },
);

story(
  "S-20: a store that answers garbage is STORE_CORRUPT, and nothing is overwritten",
  async ({ createAgent, echo, memoryStore, watched, rejection, assert }) => {
    const inner = memoryStore();
    const healthy = await createAgent({ name: "helper", model: echo(), store: inner });
    await healthy.call("precious", { sessionId: "s" });
    const bytes = new TextEncoder().encode("{ not json");
    const garbage = {
      "get answers with nothing": { get: async () => undefined },
      "get answers with too few": { get: async () => [] },
      "get answers with text": { get: async () => ["record"] },
      "get answers with a record without bytes": { get: async () => [{ revision: "1" }] },
      "get answers with text as value": { get: async () => [{ value: "{}", revision: "1" }] },
      "get answers with a number as revision": { get: async () => [{ value: bytes, revision: 1 }] },
      "the head is not JSON": { get: async () => [{ value: bytes, revision: "1" }] },
      "the head is JSON of something else": {
        get: async () => [{ value: new TextEncoder().encode('{"format":1}'), revision: "1" }],
      },
      "the head is empty": { get: async () => [{ value: new Uint8Array(), revision: "1" }] },
      "list answers with nothing": { list: async () => undefined },
      "list answers with records without keys": {
        list: async () => [{ value: bytes, revision: "1" }],
      },
      "list answers with null": { list: async () => [null] },
      "list loses the log": { list: async () => [] },
      "commit answers with nothing": { commit: async () => undefined },
      "commit answers with true": { commit: async () => true },
    };
    for (const [what, around] of Object.entries(garbage)) {
      const { store, count } = watched(around, inner);
      const agent = await createAgent({ name: "helper", model: echo(), store });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(error.code, "STORE_CORRUPT", `${what}: ${error.code} ${error.message}`);
      if (around.commit === undefined) assert.equal(count.commit, 0, what);
      const { length } = await healthy.history({ sessionId: "s" });
      assert.equal(length, 2, what);
    }
    assert.equal(
      (await healthy.call("still here", { sessionId: "s" })).text,
      "you said still here",
    );
    assert.equal((await healthy.history({ sessionId: "s" })).length, 4);
  },
);

story(
  "V-06: a store that throws gives STORE_UNAVAILABLE with the thrown object as cause",
  async ({ createAgent, echo, watched, rejection, assert }) => {
    const causes = [new Error("the disk is gone"), { odd: true }, "words", null, undefined, 5];
    const fail = {
      throws: (cause) => () => {
        throw cause;
      },
      rejects: (cause) => async () => {
        throw cause;
      },
    };
    for (const [way, failing] of Object.entries(fail)) {
      for (const method of ["get", "list", "commit"]) {
        for (const cause of causes) {
          const { store } = watched({ [method]: failing(cause) });
          const agent = await createAgent({ name: "helper", model: echo(), store });
          const error = await rejection(agent.call("hello", { sessionId: "s" }));
          const what = `${method} ${way} ${String(cause)}`;
          assert.equal(error.code, "STORE_UNAVAILABLE", what);
          assert.equal(error.cause, cause, what);
          assert.ok(error.retryable, what);
        }
      }
    }
  },
);

story(
  "reads that fail say so, with the cause",
  async ({ createAgent, echo, watched, rejection, assert }) => {
    const cause = new Error("the disk is gone");
    const { store } = watched({
      get: () => Promise.reject(cause),
      list: () => Promise.reject(cause),
    });
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const slot = { sessionId: "s" };
    const reads = [
      agent.history(slot),
      agent.getAgentState(slot),
      agent.listSessions(null),
      agent.deleteSession(slot),
    ];
    for (const error of await Promise.all(reads.map(rejection))) {
      assert.equal(error.code, "STORE_UNAVAILABLE");
      assert.equal(error.cause, cause);
    }
  },
);

story(
  "S-17: a commit that is applied and then fails does not double the turn",
  async ({ createAgent, echo, watched, lines, assert }) => {
    let failures = 0;
    const around = {
      async commit(_batch, next) {
        const answer = await next();
        failures += 1;
        throw new Error(`the answer ${answer} was lost on the way`);
      },
    };
    const { store } = watched(around);
    const agent = await createAgent({ name: "helper", model: echo(), store });
    for (const input of ["q1", "q2"]) {
      const reply = await agent.call(input, { sessionId: "s" });
      assert.equal(reply.text, `you said ${input}`);
    }
    assert.ok(failures >= 4);
    const said = ["user: q1", "assistant: you said q1", "user: q2", "assistant: you said q2"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
    assert.deepEqual(lines((await agent.getAgentState({ sessionId: "s" })).context), said);
    assert.equal((await agent.listSessions(null)).length, 1);
  },
);

story(
  "a commit that fails once without being applied is repeated, and the turn is stored once",
  async ({ createAgent, echo, watched, lines, assert }) => {
    let commits = 0;
    const around = {
      commit(_batch, next) {
        commits += 1;
        if (commits % 2 === 1) throw new Error("try again");
        return next();
      },
    };
    const { store } = watched(around);
    const agent = await createAgent({ name: "helper", model: echo(), store });
    await agent.call("q1", { sessionId: "s" });
    assert.equal(commits, 4);
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), [
      "user: q1",
      "assistant: you said q1",
    ]);
  },
);

story(
  "an answer that cannot be saved rejects with the answer as partial, and the question is found by the next call",
  async ({ createAgent, echo, memoryStore, watched, rejection, lines, assert }) => {
    const inner = memoryStore();
    let broken = false;
    let commits = 0;
    const around = {
      commit(_batch, next) {
        commits += 1;
        if (commits === 2) broken = true;
        if (broken) throw new Error("the disk is full");
        return next();
      },
    };
    const { store } = watched(around, inner);
    const agent = await createAgent({ name: "helper", model: echo(), store });
    const error = await rejection(agent.call("q1", { sessionId: "s" }));
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.equal(error.partial.content[0].text, "you said q1");
    broken = false;
    const { text } = await agent.call("q2", { sessionId: "s" });
    assert.equal(text, "you said q2");
    const history = lines(await agent.history({ sessionId: "s" }));
    assert.equal(history[0], "user: q1");
    assert.equal(history.filter((it) => it === "user: q1").length, 1);
    assert.deepEqual(history.slice(-2), ["user: q2", "assistant: you said q2"]);
  },
);

story(
  "R8: the input is stored before the model is asked",
  async ({ createAgent, modelOf, watched, assert }) => {
    const order = [];
    const around = {
      async commit(batch, next) {
        const said = batch.put.some(({ value }) =>
          new TextDecoder().decode(value).includes("precious"),
        );
        const answer = await next();
        order.push(said ? "stored" : "stored something else");
        return answer;
      },
    };
    const { store } = watched(around);
    const model = modelOf(async function* () {
      order.push("asked");
      yield { type: "text", text: "answer" };
    });
    const agent = await createAgent({ name: "helper", model, store });
    await agent.call("precious", { sessionId: "s" });
    assert.deepEqual(order, ["stored", "asked", "stored"]);
  },
);

story(
  "a conflict with another writer loses neither turn",
  async ({ createAgent, modelOf, memoryStore, watched, lines, assert }) => {
    const inner = memoryStore();
    // Two stores over the same records: like agents in two processes, they share no lock.
    const [one, other] = [watched({}, inner).store, watched({}, inner).store];
    const model = (name, before) =>
      modelOf(async function* () {
        await before?.();
        yield { type: "text", text: name };
      });
    const second = await createAgent({ name: "helper", model: model("second"), store: other });
    const first = await createAgent({ name: "helper", model: model("first"), store: one });
    await first.call("q0", { sessionId: "s" });
    const meddler = await createAgent({
      name: "helper",
      store: one,
      model: model("third", () => second.call("q2", { sessionId: "s" })),
    });
    const outcome = await meddler.call("q1", { sessionId: "s" }).catch((error) => error);
    const history = lines(await first.history({ sessionId: "s" }));
    for (const said of [
      "user: q0",
      "assistant: first",
      "user: q1",
      "user: q2",
      "assistant: second",
    ]) {
      assert.equal(
        history.filter((it) => it === said).length,
        1,
        `${said} in ${JSON.stringify(history)}`,
      );
    }
    // Without a lock between them the other agent treats q1 as a question that was cut off, and its answer becomes a side branch.
    if (outcome.code === undefined) assert.ok(history.includes("assistant: third"));
    else assert.equal(outcome.code, "SUPERSEDED");
    assert.equal((await first.call("q3", { sessionId: "s" })).text, "first");
  },
);

story(
  "a store that never answers is STORE_TIMEOUT",
  async ({ createAgent, echo, watched, rejection, assert }) => {
    const { store } = watched({ get: () => new Promise(() => {}) });
    const agent = await createAgent({
      name: "helper",
      model: echo(),
      store,
      timeouts: { store: 1 },
    });
    const error = await rejection(agent.call("hello", { sessionId: "s" }));
    assert.equal(error.code, "STORE_TIMEOUT");
    assert.ok(error.retryable && error.hint);
  },
);

story(
  "S-19: bytes that a store returns or receives are never shared with the store",
  async ({ createAgent, echo, memoryStore, watched, lines, assert }) => {
    const inner = memoryStore();
    const around = {
      async get(_keys, next) {
        const records = await next();
        setImmediate(() => records.forEach((record) => record?.value.fill(0)));
        return records;
      },
      async commit(batch, next) {
        const answer = await next();
        for (const { value } of batch.put) value.fill(0);
        return answer;
      },
    };
    const { store } = watched(around, inner);
    const agent = await createAgent({ name: "helper", model: echo(), store });
    await agent.call("q1", { sessionId: "s" });
    await agent.call("q2", { sessionId: "s" });
    assert.equal(lines(await agent.history({ sessionId: "s" })).length, 4);
  },
);

// S-21
story(
  "a store that lists too many records shows no user the data of another",
  async ({ createAgent, echo, memoryStore, watched, lines, assert }) => {
    const inner = memoryStore();
    // Like a store with a broken index: every list returns all records.
    const { store } = watched({ list: () => inner.list("") }, inner);
    const agent = await createAgent({ name: "helper", model: echo("to "), store });
    const slots = ["alice", "bob"].map((userId) => ({ userId, sessionId: `of ${userId}` }));
    for (const slot of slots) await agent.call(`I am ${slot.userId}`, slot);
    for (const { userId, sessionId } of slots) {
      const listed = (await agent.listSessions(userId)).map((info) => info.sessionId);
      assert.deepEqual(listed, [sessionId]);
      const history = lines(await agent.history({ userId, sessionId }));
      assert.deepEqual(history, [`user: I am ${userId}`, `assistant: to I am ${userId}`]);
    }
  },
);

// S-16
story(
  "an agent that has read a session before its deletion cannot change the new session",
  async ({ createAgent, echo, memoryStore, watched, rejection, lines, assert }) => {
    const inner = memoryStore();
    const [one, other] = [watched({}, inner).store, watched({}, inner).store];
    const agent = await createAgent({ name: "helper", model: echo("to "), store: one });
    const slot = { sessionId: "s" };
    await agent.call("before", slot);
    const known = await agent.getAgentState(slot);
    const elsewhere = await createAgent({ name: "helper", model: echo("to "), store: other });
    await elsewhere.deleteSession(slot);
    await elsewhere.call("after", slot);
    const now = await elsewhere.getAgentState(slot);
    assert.notEqual(now.revision.split(".")[0], known.revision.split(".")[0]);
    assert.equal((await rejection(agent.putAgentState(slot, known))).code, "SUPERSEDED");
    await agent.call("again", slot);
    const history = lines(await agent.history(slot));
    assert.deepEqual(history, ["user: after", "assistant: to after", "user: again", "assistant: to again"]);
  },
);

story(
  "with replicas, a store that other machines cannot use is refused with the names of stores that would do",
  async ({ createAgent, echo, memoryStore, localStorageStore, indexedDbStore, rejection, assert }) => {
    const able = (shared) => ({ ...memoryStore(), capabilities: { ...memoryStore().capabilities, shared } });
    const local = [memoryStore(), able("process"), able("origin"), able("host"), able("elsewhere"), undefined, localStorageStore("app"), indexedDbStore("app")];
    for (const store of local) {
      const error = await rejection(createAgent({ name: "helper", model: echo(), replicas: true, ...(store && { store }) }));
      assert.equal(error.code, "OPTIONS");
      assert.ok(/redisStore.*sqlStore/.test(error.hint), error.hint);
    }
    const agent = await createAgent({ name: "helper", model: echo("to "), replicas: true, store: able("cluster") });
    assert.equal((await agent.call("hello", { sessionId: "s", userId: "alice" })).text, "to hello");
    for (const replicas of [false, undefined]) await createAgent({ name: "helper", model: echo(), store: memoryStore(), replicas });
    assert.equal((await rejection(createAgent({ name: "helper", model: echo(), store: able("cluster"), replicas: "yes" }))).code, "OPTIONS");
  },
);

story(
  "the report says of a store what its capabilities promise, unless the store reports itself",
  async ({ createAgent, echo, memoryStore, assert }) => {
    const reported = async (capabilities, own = {}) => {
      const store = { ...memoryStore(), ...own, capabilities: { ...memoryStore().capabilities, shared: "cluster", evictable: false, ...capabilities } };
      const { durability, warnings } = await (await createAgent({ name: "helper", model: echo(), store })).storage();
      return [durability, warnings.length];
    };
    assert.deepEqual(await reported({ durability: "disk" }), ["durable", 0]);
    assert.deepEqual(await reported({ durability: "process" }), ["not-durable", 1]);
    assert.deepEqual(await reported({ durability: "none" }), ["not-durable", 1]);
    assert.deepEqual(await reported({ durability: "disk", evictable: true }), ["may-be-evicted", 1]);
    assert.deepEqual(await reported({ durability: "none", shared: "process" }), ["memory-only", 1]);
    const report = async () => ({ durability: "unknown", warnings: ["the server does not tell"] });
    assert.deepEqual(await reported({ durability: "disk" }, { report }), ["unknown", 1]);
  },
);
