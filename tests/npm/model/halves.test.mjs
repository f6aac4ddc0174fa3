// Characters whose halves a model sends in different deltas, over every dialect, custom models and the AI SDK.
import { story } from "../support/project.mjs";

// V-09
story(
  "V-09: an emoji that a provider splits over two deltas is whole in text, thinking and arguments, in every dialect",
  async ({ createAgent, memoryStore, tool, openProvider, speak, readAll, textOf, assert, ...lockgate }) => {
    const [high, low] = ["\ud83d", "\ude00"];
    for (const dialect of ["openai", "anthropic", "gemini"]) {
      const call = [{ id: "call_1", name: "note", input: { text: "hi 😀" } }];
      const asked = speak[dialect]({ thinking: "T", text: "W", calls: call }).flatMap((part) => {
        // Each text with an emoji is sent as two deltas, each with one half. Gemini sends arguments whole.
        if (/"(T|W)"/.test(part) && !part.includes('"tool')) {
          return [part.replace(/"(T|W)"/, `"$1${JSON.stringify(high).slice(1, -1)}"`), part.replace(/"(T|W)"/, `"${JSON.stringify(low).slice(1, -1)}"`)];
        }
        const halves = /^(.*)😀(.*)$/s.exec(part);
        if (halves === null || dialect === "gemini") return [part];
        const [one, other] = dialect === "openai" ? ['"}}]},"finish_reason":null}]}\n\n', 'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"'] : ['"}}\n\n', 'data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"'];
        return [`${halves[1]}\\ud83d${one}`, `${other}\\ude00${halves[2]}`];
      });
      assert.ok(asked.length > 3 && asked.join("").match(/\\ud83d/g).length >= 2, asked.join(""));
      const provider = await openProvider([{ body: asked }, { body: speak[dialect]({ text: "Done." }) }]);
      const noted = [];
      const note = tool({ name: "note", description: "n", inputSchema: { type: "object" }, execute: ({ text }) => void noted.push(text) });
      const agent = await createAgent({ name: "helper", store: memoryStore(), model: lockgate[dialect]({ model: "m", baseUrl: provider.url }), tools: [note] });
      const events = await readAll(agent.stream("Hello", { sessionId: "s" }));
      assert.equal(events.at(-1).type, "call-end", JSON.stringify(events.at(-1)));
      const joined = (type) => events.filter((event) => event.type === type).map(({ delta }) => delta).join("");
      assert.equal(joined("thinking-delta"), "T😀", dialect);
      assert.match(joined("text-delta"), /^W😀/, dialect);
      assert.deepEqual(noted, ["hi 😀"], dialect);
      assert.deepEqual(events.filter(({ type, code }) => type === "warning" && code === "text"), [], dialect);
      const [, message] = await agent.history({ sessionId: "s" });
      assert.equal(textOf(message), "W😀", dialect);
      await provider.close();
    }
  },
);

// V-09
story(
  "V-09: half a character that stays alone in a provider's answer is replaced with a warning, in every dialect",
  async ({ createAgent, openProvider, speak, readAll, assert, ...lockgate }) => {
    for (const dialect of ["openai", "anthropic", "gemini"]) {
      const body = speak[dialect]({ text: "W" }).map((part) => part.replace('"W"', '"W\\ud83d"'));
      const provider = await openProvider([{ body }]);
      const agent = await createAgent({ name: "helper", model: lockgate[dialect]({ model: "m", baseUrl: provider.url }) });
      const events = await readAll(agent.stream("Hello", { sessionId: "s" }));
      assert.equal(events.at(-1).reply?.text, "W\ufffd", dialect);
      const warned = events.filter(({ type, code }) => type === "warning" && code === "text").map(({ message }) => message);
      assert.deepEqual(warned, ["half a character was replaced in what the model said"], dialect);
      await provider.close();
    }
  },
);

// V-09
story(
  "V-09: halves in the deltas of a custom model are joined per block and tool call, and none is lost without a warning",
  async ({ createAgent, modelOf, tool, readAll, assert }) => {
    const [high, low] = ["\ud83d", "\ude00"];
    const ask = async (deltas) => {
      let asked = 0;
      const noted = [];
      const note = tool({ name: "note", description: "n", inputSchema: { type: "object" }, execute: ({ text }) => void noted.push(text) });
      const model = modelOf(async function* () {
        if (asked++ === 0) yield* deltas;
        else yield { type: "text", text: "Done." };
      });
      const agent = await createAgent({ name: "helper", model, tools: [note] });
      const events = await readAll(agent.stream("Hello", { sessionId: "s" }));
      assert.equal(events.at(-1).type, "call-end", JSON.stringify(events.at(-1)));
      const joined = (type) => events.filter((event) => event.type === type).map(({ delta }) => delta).join("");
      return { text: joined("text-delta"), thinking: joined("thinking-delta"), noted, warned: events.filter(({ type, code }) => type === "warning" && code === "text").length };
    };
    const fragment = (index, text, more = {}) => ({ type: "tool-call", index, arguments: text, ...more });
    const calls = [
      fragment(0, `{"text":"${high}`, { id: "a", name: "note" }),
      fragment(1, '{"text":"\ud83c', { id: "b", name: "note" }),
      fragment(0, `${low}"}`),
      { type: "usage", usage: { outputTokens: 1 } },
      fragment(1, '\udf27"}'),
    ];
    const { noted, warned } = await ask(calls);
    assert.deepEqual([noted.toSorted(), warned], [["🌧", "😀"], 0]);
    const apart = await ask([{ type: "thinking", text: `a${high}` }, { type: "text", text: `${low}b` }, { type: "text", text: high }, { type: "finish", reason: "stop" }]);
    assert.deepEqual([apart.thinking, apart.text, apart.warned > 0], ["a\ufffd", "\ufffdb\ufffd", true]);
    const before = await ask([{ type: "text", text: `a${high}` }, fragment(0, "{}", { id: "a", name: "note" }), { type: "text", text: `${low}b` }]);
    assert.match(before.text, /^a\ufffd\ufffdb/);
    const counted = await ask([{ type: "text", text: `a${high}` }, { type: "usage", usage: { outputTokens: 1 } }, { type: "text", text: `${low}b` }]);
    assert.deepEqual([counted.text, counted.warned], ["a😀b", 0]);
    const alone = await ask([fragment(0, `{"text":"\\ud83d"}`, { id: "a", name: "note" })]);
    assert.deepEqual([alone.noted, alone.warned], [["\ufffd"], 1]);
  },
);

// V-09
story(
  "V-09: halves in the parts of an AI SDK model are joined",
  async ({ createAgent, aiSdkModel, readAll, assert }) => {
    const parts = [
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-delta", id: "r", delta: "a\ud83d" },
      { type: "reasoning-delta", id: "r", delta: "\ude00" },
      { type: "reasoning-end", id: "r" },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "b\ud83d" },
      { type: "text-delta", id: "t", delta: "\ude00" },
      { type: "finish", usage: {}, finishReason: "stop" },
    ];
    const sdk = { specificationVersion: "v2", modelId: "m", doStream: async () => ({ stream: ReadableStream.from(parts) }) };
    const agent = await createAgent({ name: "helper", model: aiSdkModel(sdk) });
    const events = await readAll(agent.stream("Hello", { sessionId: "s" }));
    assert.equal(events.at(-1).reply.text, "b😀");
    assert.equal(events.filter(({ type }) => type === "thinking-delta").map(({ delta }) => delta).join(""), "a😀");
    assert.deepEqual(events.filter(({ type }) => type === "warning"), []);
  },
);
