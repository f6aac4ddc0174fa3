// Models of providers over real HTTP, with the packed package: three dialects, one conversation, every kind of failure.
import { story } from "../support/project.mjs";

const DIALECTS = ["openai", "anthropic", "gemini"];

for (const dialect of DIALECTS) {
  // R69, M-02, R68
  story(
    `a conversation with thoughts, words and two tools goes over ${dialect}`,
    async ({ createAgent, tool, openProvider, speak, readAll, textOf, assert, ...lockgate }, dialect) => {
      const calls = [
        { id: "call_1", name: "weather", input: { city: "Oslo" } },
        { id: "call_2", name: "weather", input: { city: "Rome" } },
      ];
      const provider = await openProvider([
        { body: speak[dialect]({ thinking: "Two cities.", text: "Let me look. ", calls }) },
        { body: speak[dialect]({ text: "Rain in Oslo, sun in Rome. 🌧" }) },
      ]);
      const weather = tool({
        name: "weather",
        description: "The weather of a city",
        inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        execute: ({ city }) => (city === "Oslo" ? "rain" : "sun"),
      });
      const model = lockgate[dialect]({ model: "m-1", baseUrl: `${provider.url}/v1`, apiKey: "canary-key-1" });
      const agent = await createAgent({ name: "helper", systemPrompt: "Be brief.", model, tools: [weather] });
      const events = await readAll(agent.stream("Weather?", { sessionId: "s" }));
      const { reply } = events.at(-1);
      assert.equal(reply.text, "Rain in Oslo, sun in Rome. 🌧");
      assert.deepEqual(
        { ...reply.usage, seconds: 0 },
        { inputTokens: 40, outputTokens: 10, cachedTokens: 16, seconds: 0 },
      );
      const thoughts = events.filter(({ type }) => type === "thinking-delta").map(({ delta }) => delta);
      assert.equal(thoughts.join(""), "Two cities.");
      const [asked, answered] = provider.requests;
      const auth = { openai: "authorization", anthropic: "x-api-key", gemini: "x-goog-api-key" }[dialect];
      assert.match(asked.headers[auth], /canary-key-1$/);
      const path = {
        openai: "/v1/chat/completions",
        anthropic: "/v1/messages",
        gemini: "/v1/models/m-1:streamGenerateContent?alt=sse",
      }[dialect];
      assert.equal(asked.path, path);
      assert.match(JSON.stringify(answered.body), /rain.*sun/);
      if (dialect === "gemini") assert.match(JSON.stringify(answered.body), /signed-call_1/);
      if (dialect === "anthropic") assert.match(JSON.stringify(answered.body), /"signature":"proof"/);
      if (dialect === "openai") assert.match(JSON.stringify(answered.body), /"reasoning_content":"Two cities\."/);
      await provider.close();
    },
    dialect,
  );
}

// R69

story(
  "an answer that is not streamed is read the same, in every dialect",
  async ({ createAgent, openProvider, openai, anthropic, gemini, assert }) => {
    const whole = {
      openai: { choices: [{ message: { content: "Hi." }, finish_reason: "stop" }], usage: { prompt_tokens: 3, completion_tokens: 1 } },
      anthropic: { type: "message", content: [{ type: "text", text: "Hi." }], stop_reason: "end_turn", usage: { input_tokens: 3, output_tokens: 1 } },
      gemini: { candidates: [{ content: { parts: [{ text: "Hi." }] }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1 } },
    };
    for (const [dialect, make] of Object.entries({ openai, anthropic, gemini })) {
      const provider = await openProvider([{ headers: { "content-type": "application/json" }, body: JSON.stringify(whole[dialect]) }]);
      const agent = await createAgent({ name: "helper", model: make({ model: "m", baseUrl: `${provider.url}/v1`, stream: false }) });
      const { text, usage } = await agent.call("hello", { sessionId: "s" });
      assert.deepEqual([text, usage.inputTokens, usage.outputTokens], ["Hi.", 3, 1], dialect);
      const [{ path, body }] = provider.requests;
      assert.ok(dialect === "gemini" ? path.endsWith(":generateContent") : body.stream === false, dialect);
      await provider.close();
    }
  },
);

// M-05, M-06, M-07, R67

story(
  "Ollama's native API is read as lines of JSON, with an option against truncated requests",
  async ({ createAgent, tool, openProvider, openai, assert }) => {
    const line = (value) => `${JSON.stringify({ model: "q", ...value })}\n`;
    const provider = await openProvider([
      { headers: { "content-type": "application/x-ndjson" }, body: [line({ message: { role: "assistant", content: "", tool_calls: [{ function: { name: "clock", arguments: {} } }] }, done: false }), line({ message: { role: "assistant", content: "" }, done: true, done_reason: "stop" })] },
      { headers: { "content-type": "application/x-ndjson" }, body: [line({ message: { role: "assistant", content: "Noon." }, done: false }), line({ message: { role: "assistant", content: "" }, done: true, done_reason: "stop", prompt_eval_count: 9, eval_count: 2 })] },
    ]);
    const clock = tool({ name: "clock", description: "c", inputSchema: { type: "object" }, execute: () => "12:00" });
    const model = openai({ model: "q", baseUrl: `${provider.url}/api`, contextWindow: 8192 });
    const agent = await createAgent({ name: "helper", model, tools: [clock] });
    const reply = await agent.call("Time?", { sessionId: "s" });
    assert.deepEqual([reply.text, reply.usage.inputTokens], ["Noon.", 9]);
    const [, { path, body }] = provider.requests;
    assert.equal(path, "/api/chat");
    assert.deepEqual([body.truncate, body.shift, body.options.num_ctx], [false, false, 8192]);
    assert.deepEqual(body.messages.slice(1), [
      { role: "assistant", content: null, tool_calls: [{ function: { name: "clock", arguments: {} } }] },
      { role: "tool", content: "12:00", tool_name: "clock" },
    ]);
    await provider.close();
  },
);

// M-19

story(
  "the fallback model takes over only if the first model fails before its first text",
  async ({ createAgent, openProvider, speak, sse, readAll, rejection, openai, anthropic, assert }) => {
    const words = sse([{ choices: [{ delta: { content: "I was" }, finish_reason: null }] }])[0];
    const first = await openProvider([{ status: 401 }, { body: [words] }, { status: 400, body: '{"error":{"code":"content_filter"}}' }]);
    const second = await openProvider([{ body: speak.anthropic({ text: "Me instead." }) }]);
    const agent = await createAgent({
      name: "helper",
      model: openai({ model: "first", baseUrl: first.url }),
      fallbackModel: anthropic({ model: "second", baseUrl: second.url }),
    });
    const events = await readAll(agent.stream("hello", { sessionId: "s" }));
    assert.equal(events.at(-1).reply.text, "Me instead.");
    assert.deepEqual(events.filter(({ type }) => type === "fallback").map(({ model }) => model), ["second"]);
    assert.deepEqual(events.filter(({ type }) => type === "model-start").map(({ model }) => model), ["first", "second"]);
    assert.equal((await rejection(agent.call("again", { sessionId: "s" }))).code, "MODEL_TRUNCATED");
    assert.equal((await rejection(agent.call("again", { sessionId: "s" }))).code, "MODEL_REFUSED");
    assert.equal(second.requests.length, 1);
    await Promise.all([first.close(), second.close()]);
  },
);

// H-07, H-11, H-12

story(
  "a session moves from provider to provider, and each sees only its own thinking",
  async ({ createAgent, tool, openProvider, speak, openai, anthropic, gemini, assert }) => {
    const call = (id) => [{ id, name: "clock", input: {} }];
    const odd = "call|of/another.provider".repeat(4);
    const [one, two, three] = await Promise.all([
      openProvider([{ body: speak.openai({ thinking: "o-thought", calls: call(odd) }) }, { body: speak.openai({ text: "One." }) }]),
      openProvider([{ body: speak.anthropic({ thinking: "a-thought", calls: call(odd) }) }, { body: speak.anthropic({ text: "Two." }) }, { body: speak.anthropic({ text: "Four." }) }]),
      openProvider([{ body: speak.gemini({ thinking: "g-thought", calls: call("g1") }) }, { body: speak.gemini({ text: "Three." }) }]),
    ]);
    const models = [
      openai({ model: "o", baseUrl: one.url }),
      anthropic({ model: "a", baseUrl: two.url }),
      gemini({ model: "gemini-3-x", baseUrl: three.url }),
    ];
    const clock = tool({ name: "clock", description: "c", inputSchema: { type: "object" }, execute: () => "noon" });
    const agent = await createAgent({ name: "helper", model: models[0], tools: [clock], sessionTools: false });
    for (const model of models) await agent.call("Time?", { sessionId: "s", model });
    const plain = await createAgent({ name: "helper", model: models[1], sessionTools: false });
    const { context } = await agent.getAgentState({ sessionId: "s" });
    await plain.putAgentState({ sessionId: "t" }, { ...(await plain.getAgentState({ sessionId: "t" })), context });
    assert.equal((await plain.call("And without tools?", { sessionId: "t" })).text, "Four.");
    const text = (provider, n) => JSON.stringify(provider.requests[n].body);
    assert.match(text(one, 1), /o-thought/);
    assert.doesNotMatch(text(two, 0), /o-thought/);
    assert.match(text(two, 1), /"signature":"proof","thinking":"a-thought"/);
    assert.doesNotMatch(text(three, 0), /[oa]-thought|proof/);
    assert.match(text(three, 0), /skip_thought_signature_validator/);
    assert.match(text(three, 1), /signed-g1/);
    const ids = two.requests[1].body.messages.flatMap(({ content }) => content).filter(({ type }) => type === "tool_use").map(({ id }) => id);
    assert.equal(new Set(ids).size, 2);
    assert.ok(ids.every((id) => /^[a-zA-Z0-9_-]{1,40}$/.test(id)), ids.join());
    assert.deepEqual(two.requests[2].body.tools.map(({ name }) => name), ["clock"]);
    assert.deepEqual(two.requests[2].body.tool_choice, { type: "none" });
    for (const provider of [one, two, three]) await provider.close();
  },
);

// R30

story(
  "an output schema is enforced by the provider if it can, else by a hidden tool",
  async ({ createAgent, memoryStore, openProvider, speak, openai, gemini, lines, rejection, assert }) => {
    const outputSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
    const at = (provider) => ({ fetch: (url, init) => fetch(url.replace("https://api.openai.com", provider.url), init) });
    const native = await openProvider([{ body: speak.openai({ text: '{"city":"Oslo"}' }) }]);
    const agent = await createAgent({ name: "helper", sessionTools: false, store: memoryStore(), model: openai({ model: "m", ...at(native) }) });
    assert.deepEqual((await agent.call("Where?", { sessionId: "s", outputSchema })).output, { city: "Oslo" });
    const { body } = native.requests[0];
    assert.deepEqual(body.response_format.json_schema, { name: "answer", schema: outputSchema, strict: true });
    assert.equal(body.tools, undefined);
    const refusing = await openProvider([
      { status: 400, body: '{"error":{"message":"response_format is not supported"}}' },
      { body: speak.openai({ calls: [{ id: "a", name: "generate_response", input: { city: "Rome" } }] }) },
    ]);
    const other = await createAgent({ name: "helper", sessionTools: false, store: memoryStore(), model: openai({ model: "m", ...at(refusing) }) });
    assert.deepEqual((await other.call("Where?", { sessionId: "s", outputSchema })).output, { city: "Rome" });
    assert.deepEqual(refusing.requests[1].body.tools.map((tool) => tool.function.name), ["generate_response"]);
    assert.deepEqual(lines(await other.history({ sessionId: "s" })), ["user: Where?", 'assistant: {"city":"Rome"}']);
    // Without an output schema in the request, a refusal has another reason, and the request is not repeated.
    const plain = await openProvider([{ status: 400, body: '{"error":{"message":"no"}}' }]);
    const fourth = await createAgent({ name: "helper", sessionTools: false, store: memoryStore(), model: openai({ model: "m", baseUrl: plain.url }) });
    assert.equal((await rejection(fourth.call("Where?", { sessionId: "s", outputSchema }))).code, "MODEL_BAD_REQUEST");
    assert.equal(plain.requests.length, 1);
    const google = await openProvider([{ body: speak.gemini({ text: '{"value":3}' }) }]);
    const third = await createAgent({ name: "helper", sessionTools: false, store: memoryStore(), model: gemini({ model: "m", baseUrl: google.url }) });
    assert.equal((await third.call("How many?", { sessionId: "s", outputSchema: { type: "integer" } })).output, 3);
    assert.equal(google.requests[0].body.generationConfig.responseMimeType, "application/json");
    for (const provider of [native, refusing, plain, google]) await provider.close();
  },
);

story(
  "invalid options of a provider's model are refused with a hint",
  async ({ openai, refusal, assert }) => {
    const wrong = [undefined, {}, { model: "" }, { model: "m", baseUrl: "localhost:1" }, { model: "m", baseUrl: "ftp://x" }, { model: "m", contextWindow: -1 }, { model: "m", apiKey: 5 }, { model: "m", headers: "x" }, { model: "m", fetch: {} }, { model: "m", stream: "yes" }, { model: "m", apikey: "x" }];
    for (const options of wrong) {
      const error = await refusal(() => openai(options));
      assert.equal(error.code, "OPTIONS", JSON.stringify(options));
      assert.ok(error.hint);
    }
  },
);
