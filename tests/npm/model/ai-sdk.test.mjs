// Models of the AI SDK, with its real packages of three specifications, over a scripted provider.
import { story } from "../support/project.mjs";

const PACKAGES = [
  ["v2", "ai-sdk-openai-compatible-v2", "openai"],
  ["v3", "ai-sdk-openai-compatible-v3", "openai"],
  ["v4", "@ai-sdk/openai-compatible", "openai"],
  ["v4", "@ai-sdk/anthropic", "anthropic"],
];

for (const [version, name, dialect] of PACKAGES) {
  story(
    `${name}, of specification ${version}, thinks, speaks, calls tools and counts`,
    async ({ createAgent, aiSdkModel, tool, openProvider, speak, readAll, assert }, { url, version, dialect }) => {
      const sdk = await import(url);
      const calls = [
        { id: "call_1", name: "weather", input: { city: "Oslo" } },
        { id: "call_2", name: "weather", input: { city: "Rome" } },
      ];
      const provider = await openProvider([
        { body: speak[dialect]({ thinking: "Two cities.", text: "Let me look. ", calls }) },
        { body: speak[dialect]({ text: "Rain and sun." }) },
      ]);
      const at = { name: "mock", baseURL: `${provider.url}/v1`, apiKey: "canary-key-1", includeUsage: true };
      const model = (sdk.createOpenAICompatible ?? sdk.createAnthropic)(at)("claude-sonnet-4-5");
      assert.equal(model.specificationVersion, version);
      const weather = tool({
        name: "weather",
        description: "The weather of a city",
        inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        execute: ({ city }) => (city === "Oslo" ? "rain" : "sun"),
      });
      const agent = await createAgent({ name: "helper", systemPrompt: "Be brief.", model: aiSdkModel(model), tools: [weather] });
      const events = await readAll(agent.stream("Weather?", { sessionId: "s" }));
      const { reply } = events.at(-1);
      assert.equal(reply.text, "Rain and sun.");
      assert.equal(reply.usage.outputTokens, 10);
      assert.equal(reply.usage.cachedTokens, 16);
      const thoughts = events.filter(({ type }) => type === "thinking-delta").map(({ delta }) => delta);
      assert.equal(thoughts.join(""), "Two cities.");
      const ends = events.filter(({ type }) => type === "tool-call-end").map(({ toolCallId, input }) => [toolCallId, input]);
      assert.deepEqual(ends, calls.map(({ id, input }) => [id, input]));
      const second = JSON.stringify(provider.requests[1].body);
      assert.match(second, /rain.*sun/);
      if (dialect === "anthropic") assert.match(second, /"signature":"proof"/);
      await provider.close();
    },
    { url: import.meta.resolve(name), version, dialect },
  );
}

story(
  "an error of an AI SDK model gets the right code, and a broken history is repaired for the model",
  async ({ createAgent, aiSdkModel, openProvider, speak, rejection, refusal, assert }, url) => {
    const { createOpenAICompatible } = await import(url);
    const provider = await openProvider([
      { status: 401, body: '{"error":{"message":"Incorrect API key provided"}}' },
      { status: 400, body: '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}' },
      { body: speak.openai({ text: "Fine." }) },
    ]);
    const model = aiSdkModel(createOpenAICompatible({ name: "mock", baseURL: provider.url })("m"));
    const agent = await createAgent({ name: "helper", model });
    assert.equal((await rejection(agent.call("one", { sessionId: "s" }))).code, "MODEL_AUTH");
    assert.equal((await rejection(agent.call("two", { sessionId: "s" }))).code, "MODEL_CONTEXT_OVERFLOW");
    const state = await agent.getAgentState({ sessionId: "t" });
    const open = { type: "tool_use", id: "x", name: "gone", input: {}, state: "finished" };
    const message = (role, content, id) => ({ id, role, content, at: "2026-01-01T00:00:00Z" });
    const context = [message("user", [{ type: "text", text: "hi" }], "a"), message("assistant", [open], "b")];
    await agent.putAgentState({ sessionId: "t" }, { ...state, context });
    assert.equal((await agent.call("three", { sessionId: "t" })).text, "Fine.");
    assert.deepEqual(provider.requests[2].body.messages.map(({ role }) => role), ["user", "assistant", "tool", "user"]);
    assert.equal((await refusal(() => aiSdkModel({ specificationVersion: "v1", modelId: "m", doStream() {} }))).code, "OPTIONS");
    await provider.close();
  },
  import.meta.resolve("@ai-sdk/openai-compatible"),
);
