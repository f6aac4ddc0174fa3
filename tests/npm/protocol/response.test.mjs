// A call as an HTTP response, in both protocols. The AI SDK's own reader reads its stream.
import { lend, story, tell } from "../support/project.mjs";
import { before, test } from "node:test";

before(() => lend("ai"));

story(
  "a response of a call has our events, each with its number as id",
  async ({ createAgent, echo, memoryStore, assert }) => {
    const agent = await createAgent({ name: "helper", model: echo(), store: memoryStore() });
    const response = agent.stream("hello", { sessionId: "s" }).toResponse("lockgate", { status: 201, headers: { "x-mine": "yes" } });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("x-mine"), "yes");
    assert.match(response.headers.get("content-type"), /^text\/event-stream/);
    const frames = (await response.text()).trim().split("\n\n");
    const events = frames.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)[1]));
    assert.deepEqual(frames.map((frame) => Number(/^id: (\d+)$/m.exec(frame)[1])), events.map(({ seq }) => seq));
    assert.equal(events[0].type, "call-start");
    assert.equal(events.at(-1).reply.text, "you said hello");
  },
);

story(
  "a client that disconnects stops the call only if onDisconnect says so, and the partial answer is saved",
  async ({ createAgent, endless, modelOf, memoryStore, signpost, lines, assert }) => {
    const { model, reached } = endless();
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const stopped = agent.stream("hello", { sessionId: "stops" });
    const body = stopped.toResponse("lockgate", { onDisconnect: "stop" }).body;
    await reached;
    await body.cancel();
    assert.equal((await stopped.result).reason, "interrupted");
    assert.deepEqual(lines(await agent.history({ sessionId: "stops" })), ["user: hello", "assistant: once upon a time"]);

    const go = signpost();
    const patient = modelOf(async function* () {
      yield { type: "text", text: "all " };
      await go.passed;
      yield { type: "text", text: "of it" };
    });
    const other = await createAgent({ name: "helper", model: patient, store: memoryStore() });
    const running = other.stream("hello", { sessionId: "runs on" });
    await running.toResponse().body.cancel();
    go.pass();
    assert.equal((await running.result).text, "all of it");
  },
);

story(
  "a stream without events sends keep-alive comments",
  async ({ createAgent, modelOf, memoryStore, signpost, assert }) => {
    // Fifteen seconds pass at once.
    const wait = globalThis.setTimeout;
    globalThis.setTimeout = (work, ms, ...rest) => wait(work, ms === 15_000 ? 0 : ms, ...rest);
    const go = signpost();
    const model = modelOf(async function* () {
      await go.passed;
      yield { type: "text", text: "at last" };
    });
    const agent = await createAgent({ name: "helper", model, store: memoryStore() });
    const response = agent.stream("hello", { sessionId: "s" }).toResponse();
    let text = "";
    for await (const some of response.body.pipeThrough(new TextDecoderStream())) {
      text += some;
      // The response waits for the model, and the model waits for the test.
      if (text.includes("model-start") && some.startsWith(": ")) go.pass();
    }
    assert.ok(text.includes("at last"));
  },
);

test("the AI SDK's own reader turns the stream into the messages of the session", () =>
  tell(async ({ createAgent, demoModel, memoryStore, tool, assert }) => {
    const { parseJsonEventStream, readUIMessageStream, uiMessageChunkSchema } = await import("ai");
    const { toUiMessages, readUiRequest } = await import("lockgate/ai-sdk");
    const inputSchema = { type: "object", properties: {} };
    const clock = tool({ name: "clock", description: "The time.", inputSchema, execute: () => ({ now: "noon" }) });
    const agent = await createAgent({ name: "helper", model: demoModel(), tools: [clock], store: memoryStore() });
    const chunksOf = async (response) => {
      const chunks = [];
      for await (const parsed of parseJsonEventStream({ stream: response.body, schema: uiMessageChunkSchema })) {
        assert.ok(parsed.success, parsed.error?.message);
        chunks.push(parsed.value);
      }
      return chunks;
    };
    const put = async (chunks) => {
      let last;
      for await (const message of readUIMessageStream({ stream: new ReadableStream({ start: (c) => (chunks.forEach((x) => c.enqueue(x)), c.close()) }) })) last = message;
      return last;
    };
    for (const text of ["What time is it?", "think about it", "hello"]) {
      const asked = readUiRequest({ id: "s", trigger: "submit-message", messages: [{ id: text, role: "user", parts: [{ type: "text", text }] }] });
      const response = agent.stream(asked.input, { sessionId: asked.sessionId }).toResponse("ai-sdk");
      assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
      const streamed = await put(await chunksOf(response));
      const kept = toUiMessages(await agent.history({ sessionId: "s" })).at(-1);
      const plain = (parts) => JSON.parse(JSON.stringify(parts.map(({ id: _, providerMetadata: __, ...part }) => part)));
      assert.deepEqual(plain(streamed.parts), plain(kept.parts), text);
    }
    const [user, answer] = toUiMessages(await agent.history({ sessionId: "s" }));
    assert.deepEqual([user.id, user.role, answer.role], ["What time is it?", "user", "assistant"]);
    assert.deepEqual(answer.parts[1].output, { now: "noon" });
  }));

test("requests of a chat client are read, and invalid ones are refused", () =>
  tell(async ({ LockgateError, assert }) => {
    const { readUiRequest } = await import("lockgate/ai-sdk");
    const user = (...parts) => ({ id: "s", trigger: "submit-message", messages: [{ id: "u", role: "user", parts }] });
    const file = { type: "file", url: "data:image/png;base64,AAAA", mediaType: "image/png", filename: "a.png" };
    assert.deepEqual(readUiRequest(user({ type: "text", text: "look" }, file)), {
      sessionId: "s",
      kind: "message",
      input: {
        role: "user",
        id: "u",
        content: [{ type: "text", text: "look" }, { type: "image", name: "a.png", source: { type: "base64", mediaType: "image/png", data: "AAAA" } }],
      },
    });
    const link = { type: "file", url: "https://example.org/a.pdf", mediaType: "application/pdf" };
    assert.deepEqual(readUiRequest(user(link)).input.content, [{ type: "file", source: { type: "url", url: link.url, mediaType: link.mediaType } }]);
    assert.deepEqual(readUiRequest({ id: "s", trigger: "regenerate-message", messages: [] }), { sessionId: "s", kind: "regenerate" });
    assert.deepEqual(readUiRequest({ id: "s", trigger: "regenerate-message", messageId: "a", messages: [] }), { sessionId: "s", kind: "regenerate", messageId: "a" });
    assert.equal(readUiRequest({ id: "s", trigger: "regenerate-message", messageId: "a", messages: [{ id: "q", role: "user", parts: [] }] }).messageId, "q");
    const edited = readUiRequest({ ...user({ type: "text", text: "other" }), messageId: "u" });
    assert.deepEqual(edited, { sessionId: "s", kind: "regenerate", messageId: "u", input: { role: "user", content: [{ type: "text", text: "other" }] } });
    const parts = [
      { type: "step-start" },
      { type: "tool-old", toolCallId: "0", state: "output-available", output: 1 },
      { type: "step-start" },
      { type: "tool-post", toolCallId: "1", state: "approval-responded", approval: { id: "1", approved: true } },
      { type: "dynamic-tool", toolName: "x", toolCallId: "2", state: "approval-responded", approval: { id: "2", approved: false, reason: "no" } },
      { type: "tool-mine", toolCallId: "3", state: "output-available", output: { a: 1 } },
      { type: "tool-mine", toolCallId: "4", state: "output-error", errorText: "broken" },
    ];
    assert.deepEqual(readUiRequest({ id: "s", message: { role: "assistant", parts } }).answers, [
      { toolCallId: "1", approve: true },
      { toolCallId: "2", approve: false, reason: "no" },
      { toolCallId: "3", output: { a: 1 } },
      { toolCallId: "4", output: "broken", failed: true },
    ]);
    const bad = [null, 1, [], {}, { id: "" }, { id: "s" }, { id: "s", messages: [] }, { id: "s", messages: [{ role: "user" }] }, user(), user({ type: "file" }),
      user(7), { id: "s", message: { role: "system", parts: [] } }, { id: "s", message: { role: "assistant", parts: [{ type: "text", text: "x" }] } }];
    for (const body of bad) {
      assert.throws(() => readUiRequest(body), (error) => LockgateError.isInstance(error) && error.code === "INPUT_INVALID" && error.hint !== undefined, JSON.stringify(body));
    }
  }));
