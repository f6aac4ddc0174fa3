// The connections to a provider: they are used again, because each answer is read to the end of its response.
import { story } from "../support/project.mjs";

/** Ten calls over one dialect, one after the other. Returns how many connections the server saw. */
const connectionsOf = async ({ createAgent, speak, assert, ...lockgate }, { dialect, stream }) => {
  const { createServer } = await import("node:http");
  const whole = {
    openai: { choices: [{ message: { content: "Hi." }, finish_reason: "stop" }] },
    anthropic: { type: "message", content: [{ type: "text", text: "Hi." }], stop_reason: "end_turn" },
    gemini: { candidates: [{ content: { parts: [{ text: "Hi." }] }, finishReason: "STOP" }] },
  };
  let cut = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.on("close", () => (cut += response.writableFinished ? 0 : 1));
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      if (!stream) return response.end(JSON.stringify(whole[dialect]));
      for (const part of speak[dialect]({ text: "Hi." })) response.write(part);
      response.end();
    });
  });
  let connections = 0;
  server.on("connection", () => (connections += 1));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const model = lockgate[dialect]({ model: "m", baseUrl: `http://127.0.0.1:${server.address().port}/v1`, apiKey: "canary-key-1", stream });
  const agent = await createAgent({ name: "helper", model });
  for (let n = 0; n < 10; n++) assert.equal((await agent.call("Hello", { sessionId: "s" })).text, "Hi.");
  server.closeAllConnections();
  server.close();
  assert.equal(cut, 0, "a response was cut off");
  assert.equal(connections, 1);
};

for (const dialect of ["openai", "anthropic", "gemini"]) {
  for (const stream of [true, false]) {
    // M-10
    story(`ten calls over ${dialect} use one connection, ${stream ? "streamed" : "with whole answers"}`, connectionsOf, { dialect, stream });
  }
}

// M-10
story(
  "a reply does not wait for the rest of its response, and a rest without an end is cut off by its size or its time",
  async ({ createAgent, openProvider, openai, speak, signpost, assert }) => {
    const [late, gate] = [signpost(), signpost()];
    const filler = `: ${"x".repeat(10_000)}\n\n`;
    const flood = Array.from({ length: 200 }, () => filler);
    const provider = await openProvider([
      { body: [...speak.openai({ text: "One." }), () => late.passed, ": the end\n\n"] },
      { body: [...speak.openai({ text: "Two." }), ...flood, () => gate.passed] },
      { body: [...speak.openai({ text: "Three." }), () => gate.passed] },
    ]);
    const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url }) });
    const closed = async (n) => {
      while (provider.state.closed < n) await new Promise((resolve) => setImmediate(resolve));
    };
    assert.equal((await agent.call("Hello", { sessionId: "s" })).text, "One.");
    assert.equal(provider.state.closed, 0, "the response was still open when the reply came");
    late.pass();
    assert.equal((await agent.call("Hello", { sessionId: "s" })).text, "Two.");
    await closed(1);
    assert.equal((await agent.call("Hello", { sessionId: "s" })).text, "Three.");
    await closed(2);
    gate.pass();
    await provider.close();
  },
);
