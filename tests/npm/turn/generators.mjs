// Tools that are generators, in Node, workerd and a page.
import assert from "node:assert/strict";

/** Runs each kind of generator as a tool, and returns what was shown, answered and cleaned up. The source is written into a program of another process or page, so it can use only its parameters. */
export async function generators({ createAgent, customModel, memoryStore, textOf, tool }) {
  const cleaned = [];
  const started = {};
  const never = new Promise(() => {});
  const ways = {
    async *async(input, context) {
      yield `${input.word} `;
      await null;
      yield "two";
      return { for: context.sessionId };
    },
    *plain() {
      yield "one ";
      yield Promise.resolve("two");
      return "both";
    },
    async late() {
      await null;
      return (async function* () {
        yield "one";
      })();
    },
    async *throws() {
      try {
        yield "one";
        throw new Error("it broke");
      } finally {
        cleaned.push("throws");
      }
    },
    async *suspends(_, context) {
      yield "one";
      context.suspend("later");
    },
    async *waits(_, { signal }) {
      try {
        yield "one";
        started.waits();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        yield "too late";
      } finally {
        cleaned.push("waits");
        started.cleaned();
      }
    },
    async *endless() {
      try {
        for (;;) yield "";
      } finally {
        cleaned.push("endless");
      }
    },
    async *hangs() {
      yield "one";
      await never;
    },
  };
  const timeouts = { endless: 300, hangs: 300 };
  const tools = Object.entries(ways).map(([name, execute]) => tool({ name, description: name, inputSchema: { type: "object" }, execute, ...(timeouts[name] && { timeoutMs: timeouts[name] }) }));
  const model = customModel({
    id: "generators",
    async *generate({ messages }) {
      const last = messages.at(-1);
      if (last.role === "user") yield { type: "tool-call", index: 0, id: "c1", name: textOf(last), arguments: '{"word":"one"}' };
      else yield { type: "text", text: "done" };
    },
  });
  const agent = await createAgent({ name: "helper", model, tools, store: memoryStore() });
  const isCleaned = new Promise((resolve) => (started.cleaned = resolve));
  const seen = {};
  for (const name of Object.keys(ways)) {
    const reached = new Promise((resolve) => (started[name] = resolve));
    const call = agent.stream(name, { sessionId: name });
    let shown = "";
    const reading = (async () => {
      for await (const event of call) if (event.type === "tool-delta") shown += event.delta;
    })();
    if (name === "waits") {
      await reached;
      call.stop();
    }
    const { reason, messages } = await call.result;
    await reading;
    const [result] = messages.flatMap(({ content }) => content).filter(({ type }) => type === "tool_result");
    seen[name] = [reason, shown, result?.state ?? null, textOf(result?.output ?? [])];
  }
  await isCleaned;
  return { seen, cleaned: cleaned.sort() };
}

/** Checks what was seen. */
export function checkGenerators({ seen, cleaned }) {
  assert.deepEqual(seen.async, ["stop", "one two", "success", '{"for":"async"}']);
  assert.deepEqual(seen.plain, ["stop", "one two", "success", "both"]);
  assert.deepEqual(seen.late, ["stop", "one", "success", "Done."]);
  assert.deepEqual(seen.throws, ["stop", "one", "error", "it broke"]);
  assert.deepEqual(seen.suspends, ["suspended", "one", null, ""]);
  assert.deepEqual(seen.waits.slice(0, 3), ["interrupted", "one", "interrupted"]);
  for (const name of ["endless", "hangs"]) {
    assert.deepEqual(seen[name].slice(0, 3), ["stop", name === "hangs" ? "one" : "", "error"], name);
    assert.match(seen[name][3], /did not finish within 300 ms/);
  }
  assert.deepEqual(cleaned, ["endless", "throws", "waits"]);
}
