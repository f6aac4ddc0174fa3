// The option `memory` in the packed package: facts of one session are known in the next, and no reply waits for it.
import { story } from "../support/project.mjs";

story(
  "after drain a fact of the third turn is in the day's file, and new sessions of that user, but no other user, get it",
  async ({ createAgent, modelOf, textOf, assert }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const told = [];
    const model = modelOf(async function* ({ system }) {
      told.push(system);
      yield { type: "text", text: "noted" };
    });
    let asked = 0;
    const noter = modelOf(async function* ({ messages }) {
      asked++;
      const [, said] = textOf(messages[0]).split("The conversation:");
      const facts = said.split("\n").filter((line) => line.startsWith("Human: I am"));
      yield { type: "text", text: facts.map((line) => line.replace("Human: I am", "- The user is")).join("\n") || "NONE" };
    }, "noter");
    const store = fileStore("./kept");
    const options = { name: "helper", model, store, systemPrompt: "Be kind.", memory: { model: noter, flush: "always" } };
    const agent = await createAgent(options);
    const slot = { userId: "ada", sessionId: "s1" };
    for (const text of ["How are you today?", "And what is new?", "I am Ada, of Bern"]) await agent.call(text, slot);
    await agent.drain();
    const today = `memory/${new Date().toISOString().slice(0, 10)}.md`;
    assert.ok((await agent.files.list("ada")).includes(today));
    assert.equal(await agent.files.read("ada", today), "- The user is Ada, of Bern\n");
    const before = asked;
    await agent.drain();
    assert.equal(asked, before, "nothing is new");
    await agent.close();

    const next = await createAgent(options);
    await next.call("hello", { userId: "ada", sessionId: "s2" });
    assert.match(told.at(-1), /^Be kind\.\n\n<memory>[^]*The user is Ada, of Bern\n<\/memory>$/);
    const [first] = (await next.inspect({ userId: "ada", sessionId: "s2" })).parts;
    assert.equal(first.text, told.at(-1));
    await next.call("hello", { userId: "bob", sessionId: "s1" });
    assert.equal(told.at(-1), "Be kind.");
    await next.close();
    await store.close();
  },
);

story(
  "a memory model that hangs or fails delays no reply, and missed facts are noted later",
  async ({ createAgent, modelOf, echo, memoryStore, readAll, signpost, assert }) => {
    const { passed: hung, pass } = signpost();
    const { passed: released, pass: release } = signpost();
    let asked = 0;
    const noter = modelOf(async function* () {
      asked++;
      if (asked === 1) {
        pass();
        await released;
        throw new Error("out of order");
      }
      yield { type: "text", text: "- likes tea" };
    });
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore(), memory: { model: noter } });
    const slot = { userId: "ada", sessionId: "s" };
    assert.equal((await agent.call("I like tea very much", slot)).text, "you said I like tea very much");
    await hung;
    assert.equal((await agent.call("are you still there?", slot)).text, "you said are you still there?");
    release();
    await agent.drain();
    const [today] = await agent.files.list("ada");
    assert.equal(await agent.files.read("ada", today), "- likes tea\n");
    const events = await readAll(agent.stream("and now?", slot));
    assert.ok(events.some((event) => event.type === "warning" && event.code === "memory"));
    assert.equal((await agent.history(slot)).length, 6);
  },
);

story(
  "the memory tools exist only with the option memory",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, rejection, assert }) => {
    const calls = () => callsOf(["memory_save", { content: "likes tea" }], ["memory_search", { query: "TEA" }], ["memory_get", { path: "MEMORY.md" }]);
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model: scriptedModel(calls()), store, memory: true });
    const [saved, found, none] = outcomesOf(await agent.call("go", { userId: "ada", sessionId: "s" }));
    assert.equal(saved, "Noted 1.");
    assert.match(found, /^memory\/\d{4}-\d\d-\d\d\.md#1: likes tea$/);
    assert.match(none, /no such file of notes/);
    const plain = await createAgent({ name: "plain", model: scriptedModel(calls()), store });
    const [missing] = outcomesOf(await plain.call("go", { userId: "ada", sessionId: "s" }));
    assert.match(missing, /does not exist/);
    const bad = await rejection(createAgent({ name: "helper", model: scriptedModel([]), memory: { model: {} } }));
    assert.equal(bad.code, "OPTIONS");
    assert.match(bad.message, /memory\.model/);
  },
);
