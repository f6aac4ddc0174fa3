// Failures of providers, over real HTTP and with the packed package: each failure has its code, and no key is visible.
import { story } from "../support/project.mjs";

story(
  "refusals are retried where that helps, and otherwise give the reason",
  async ({ createAgent, openProvider, speak, readAll, rejection, openai, assert }) => {
    const again = [408, 409, 500, 502, 503, 504, 529].map((status) => ({ status }));
    const limited = { status: 429, headers: { "retry-after": "0" }, body: '{"error":{"message":"slow down"}}' };
    for (const refusal of [...again, limited]) {
      const provider = await openProvider([refusal, { body: speak.openai({ text: "now" }) }]);
      const model = openai({ model: "m", baseUrl: provider.url });
      const agent = await createAgent({ name: "helper", model, retries: { initialMs: 1 }, compaction: false });
      const events = await readAll(agent.stream("hello", { sessionId: "s" }));
      assert.equal(events.at(-1).reply.text, "now", refusal.status);
      assert.equal(events.filter(({ type }) => type === "retry").length, 1);
      await provider.close();
    }
    const final = [
      [{ status: 401, body: '{"error":{"message":"Incorrect API key provided: sk-abcdefghijklmnop"}}' }, "MODEL_AUTH"],
      [{ status: 400, body: '{"error":{"message":"unknown parameter"}}' }, "MODEL_BAD_REQUEST"],
      [{ status: 404, body: "not here" }, "MODEL_BAD_REQUEST"],
      [{ status: 413 }, "MODEL_BAD_REQUEST"],
      [{ body: '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}' }, "MODEL_CONTEXT_OVERFLOW"],
      [{ body: "<html><body>Welcome</body></html>" }, "MODEL_BAD_REQUEST"],
    ];
    for (const [refusal, code] of final) {
      const provider = await openProvider([refusal]);
      const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url }), compaction: false });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(error.code, code, error.message);
      assert.ok(error.hint, code);
      assert.doesNotMatch(error.message, /sk-abc/);
      assert.ok(error.message.length < 700);
      assert.equal(provider.requests.length, 1);
      await provider.close();
    }
  },
);

// M-03, M-04, M-08, M-14, M-15

story(
  "an answer that breaks off, fails or is filtered keeps its text, runs no tool and is not requested again",
  async ({ createAgent, memoryStore, tool, openProvider, speak, sse, rejection, lines, openai, assert }) => {
    const words = sse([{ choices: [{ delta: { content: "I was about" }, finish_reason: null }] }])[0];
    const call = sse([{ choices: [{ delta: { tool_calls: [{ index: 0, id: "a", function: { name: "boom", arguments: "{}" } }] }, finish_reason: null }] }])[0];
    const filtered = sse([{ choices: [{ delta: {}, finish_reason: "content_filter" }] }])[0];
    const cases = [
      [{ body: [words, call], cut: true }, /MODEL_(TRUNCATED|NETWORK)/],
      [{ body: [words, call] }, /MODEL_TRUNCATED/],
      [{ body: [words, 'data: {"error":{"code":502,"message":"gone"}}\n\n'] }, /MODEL_OVERLOADED/],
      [{ body: [words, filtered] }, /MODEL_REFUSED/],
    ];
    for (const [answer, code] of cases) {
      const provider = await openProvider([answer]);
      let ran = 0;
      const boom = tool({ name: "boom", description: "b", inputSchema: { type: "object" }, execute: () => (ran += 1) });
      const agent = await createAgent({ name: "helper", store: memoryStore(), model: openai({ model: "m", baseUrl: provider.url }), tools: [boom] });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.match(error.code, code);
      assert.equal(error.partial.content[0].text, "I was about");
      assert.deepEqual(lines(await agent.history({ sessionId: "s" })), ["user: hello", "assistant: I was about"]);
      assert.equal(ran, 0);
      assert.equal(provider.requests.length, 1);
      await provider.close();
    }
    // A tool call that is cut off by the token limit is not run; the model is told, and answers.
    const cut = sse([
      { choices: [{ delta: { tool_calls: [{ index: 0, id: "a", function: { name: "boom", arguments: '{"x":' } }] } }] },
      { choices: [{ delta: {}, finish_reason: "length" }] },
    ]);
    const provider = await openProvider([{ body: cut }, { body: speak.openai({ text: "Sorry." }) }]);
    let ran = 0;
    const boom = tool({ name: "boom", description: "b", inputSchema: { type: "object" }, execute: () => (ran += 1) });
    const agent = await createAgent({ name: "helper", store: memoryStore(), model: openai({ model: "m", baseUrl: provider.url }), tools: [boom] });
    assert.equal((await agent.call("hello", { sessionId: "s" })).text, "Sorry.");
    assert.equal(ran, 0);
    assert.match(provider.requests[1].body.messages.at(-1).content, /cut off at the token limit/);
    await provider.close();
  },
);

story(
  "M-08: an answer that broke off is requested again only if the caller does so, and its question is sent once",
  async ({ createAgent, memoryStore, openProvider, speak, sse, rejection, lines, openai, assert }) => {
    const words = sse([{ choices: [{ delta: { content: "I was about" }, finish_reason: null }] }])[0];
    const provider = await openProvider([{ body: [words], cut: true }, { body: speak.openai({ text: "Here it is." }) }]);
    const agent = await createAgent({ name: "helper", store: memoryStore(), model: openai({ model: "m", baseUrl: provider.url }) });
    const context = { sessionId: "s", callId: "mine" };
    const { retryable } = await rejection(agent.call("hello", context));
    assert.deepEqual([retryable, provider.requests.length], [true, 1]);
    assert.equal((await agent.call("hello", context)).text, "Here it is.");
    assert.equal(provider.requests.length, 2);
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), ["user: hello", "assistant: I was about", "assistant: Here it is."]);
    // The answer is stored now: no third request is sent.
    assert.equal((await agent.call("hello", context)).text, "Here it is.");
    assert.equal(provider.requests.length, 2);
    await provider.close();
  },
);

// M-09

story(
  "connecting, the first byte, pauses and the whole call have separate deadlines",
  async ({ createAgent, openProvider, sse, rejection, openai, signpost, assert }) => {
    const gate = signpost();
    const words = sse([{ choices: [{ delta: { content: "I was" }, finish_reason: null }] }])[0];
    const cases = [
      [() => gate.passed.then(() => ({})), { model: 1_500 }, "MODEL_TIMEOUT", /did not accept the request/],
      [{ body: [": hello\n\n", () => gate.passed] }, { model: 1_500 }, "MODEL_TIMEOUT", /did not begin/],
      [{ body: [words, () => gate.passed] }, { model: 1_500 }, "MODEL_TIMEOUT", /did not continue/],
      [{ body: [words, () => gate.passed] }, { call: 1_500 }, "TIMEOUT", /./],
    ];
    const providers = [];
    for (const [answer, timeouts, code, message] of cases) {
      const provider = await openProvider(typeof answer === "function" ? answer : [answer]);
      providers.push(provider);
      const model = openai({ model: "m", baseUrl: provider.url });
      const agent = await createAgent({ name: "helper", model, timeouts, retries: { attempts: 1 } });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
    }
    gate.pass();
    for (const provider of providers) await provider.close();
  },
);

// M-10

story(
  "an abort closes the connection, and the session stays usable",
  async ({ createAgent, openProvider, speak, sse, signpost, rejection, lines, openai, assert }) => {
    const [words, gate] = [sse([{ choices: [{ delta: { content: "Once upon" }, finish_reason: null }] }])[0], signpost()];
    const provider = await openProvider([{ body: [words, () => gate.passed] }, { body: speak.openai({ text: "Here." }) }]);
    const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url }) });
    const controller = new AbortController();
    const call = agent.stream("hello", { sessionId: "s", signal: controller.signal });
    const failed = rejection(call.result);
    const terminal = [];
    const read = (async () => {
      for await (const { type } of call) {
        if (type === "text-delta") controller.abort();
        if (type === "error" || type === "call-end") terminal.push(type);
      }
    })().catch(() => {});
    assert.equal((await failed).code, "ABORTED");
    await read;
    assert.deepEqual(terminal, ["error"]);
    while (provider.state.closed === 0) await new Promise((resolve) => setImmediate(resolve));
    gate.pass();
    assert.equal((await agent.call("again", { sessionId: "s" })).text, "Here.");
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), ["user: hello", "assistant: Once upon", "user: again", "assistant: Here."]);
    await provider.close();
  },
);

// M-11, X-15

story(
  "a key is sent only to the base URL of its model: redirects are not followed, and no model name leads to another host",
  async ({ createAgent, openProvider, rejection, openai, gemini, assert }) => {
    const other = await openProvider([]);
    for (const status of [301, 302, 307, 308]) {
      const provider = await openProvider([{ status, headers: { location: `${other.url}/v1/chat/completions` } }]);
      const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url, apiKey: "canary-key-1" }), retries: { attempts: 1 } });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(error.code, "MODEL_NETWORK");
      assert.match(error.hint, /baseUrl/);
      await provider.close();
    }
    assert.equal(other.requests.length, 0);
    const urls = [];
    const fetch = async (url) => (urls.push(new URL(url)), Response.json({}, { status: 400 }));
    for (const model of ["//evil.example/x", "../../x", "a?b=c#d", "@evil.example", "https://evil.example/"]) {
      const agent = await createAgent({ name: "helper", model: gemini({ model, fetch, baseUrl: "https://good.example/v1beta?a=b", apiKey: "canary-key-1" }) });
      await rejection(agent.call("hello", { sessionId: "s" }));
    }
    assert.deepEqual(new Set(urls.map(({ host }) => host)), new Set(["good.example"]));
    assert.ok(urls.every(({ searchParams, hash }) => searchParams.get("a") === "b" && hash === ""));
    await other.close();
  },
);

//

story(
  "requests are kept out of caches, carry no cookies, and hold the key in a header only",
  async ({ createAgent, speak, openai, anthropic, gemini, assert }) => {
    for (const [dialect, make] of Object.entries({ openai, anthropic, gemini })) {
      let seen;
      const fetch = async (url, init) => ((seen = { url, init }), new Response(speak[dialect]({ text: "Hi" }).join("")));
      let asked = 0;
      const apiKey = async () => `canary-key-${++asked}`;
      const model = make({ model: "m", baseUrl: "https://user:pass-word@example.com/base/", apiKey, fetch, headers: { "x-team": "blue" } });
      const agent = await createAgent({ name: "helper", model });
      await agent.call("hello", { sessionId: "s" });
      await agent.call("hello", { sessionId: "s" });
      assert.equal(asked, 2, "the key is asked for before every request");
      assert.deepEqual([seen.init.cache, seen.init.credentials, seen.init.redirect], ["no-store", "omit", "manual"]);
      assert.doesNotMatch(seen.url, /canary|pass-word/);
      assert.equal(seen.init.headers.get("x-team"), "blue");
      assert.equal(seen.init.headers.has("anthropic-dangerous-direct-browser-access"), false);
      assert.doesNotMatch(new TextDecoder().decode(seen.init.body), /canary/);
    }
  },
);

// M-16

story(
  "a provider that cannot be reached is MODEL_NETWORK with the likely cause",
  async ({ createAgent, openProvider, rejection, openai, assert }) => {
    const provider = await openProvider([]);
    await provider.close();
    const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url }), retries: { attempts: 1 } });
    const error = await rejection(agent.call("hello", { sessionId: "s" }));
    assert.equal(error.code, "MODEL_NETWORK");
    assert.match(error.hint, /nothing listens at 127\.0\.0\.1:\d+/);
    assert.ok(error.retryable);
  },
);

// M-17

story(
  "a request that fits only with a shorter answer is repeated once with a lower limit, and its input is stored once",
  async ({ createAgent, openProvider, speak, rejection, anthropic, lines, assert }) => {
    const message = "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input length or `max_tokens` and try again";
    const refusal = { status: 400, body: JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }) };
    const provider = await openProvider([refusal, { body: speak.anthropic({ text: "Short." }) }, refusal, refusal]);
    const agent = await createAgent({ name: "helper", model: anthropic({ model: "claude-x", baseUrl: provider.url }), generate: { maxTokens: 32_000 }, compaction: false });
    assert.equal((await agent.call("hello", { sessionId: "s" })).text, "Short.");
    assert.deepEqual(provider.requests.map(({ body }) => body.max_tokens), [32_000, 20_000]);
    assert.deepEqual(provider.requests[0].body.messages, provider.requests[1].body.messages);
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), ["user: hello", "assistant: Short."]);
    const error = await rejection(agent.call("again", { sessionId: "s" }));
    assert.equal(error.code, "MODEL_CONTEXT_OVERFLOW");
    assert.equal(provider.requests.length, 4, "repeated once only");
    await provider.close();
  },
);

// M-20

story(
  "a provider that counts far fewer tokens than it was sent causes a warning",
  async ({ createAgent, openProvider, speak, readAll, openai, assert }) => {
    const provider = await openProvider([{ body: speak.openai({ text: "Hm?" }) }]);
    const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url }) });
    const events = await readAll(agent.stream("word ".repeat(10_000), { sessionId: "s" }));
    const warned = events.filter(({ type }) => type === "warning").map(({ code }) => code);
    assert.ok(warned.includes("context_truncated"), warned.join());
    assert.equal(events.at(-1).type, "call-end");
    await provider.close();
  },
);

// M-15

story(
  "an empty answer, a refusal and a filtered answer are different outcomes",
  async ({ createAgent, openProvider, sse, rejection, openai, assert }) => {
    const finish = (finish_reason, delta = {}) => ({ body: sse([{ choices: [{ delta, finish_reason }] }]) });
    const empty = await openProvider(() => finish("stop", { reasoning_content: "hm" }));
    const silent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: empty.url }) });
    assert.equal((await silent.call("hello", { sessionId: "s" })).reason, "empty");
    await empty.close();
    for (const answer of [finish("content_filter"), finish("stop", { refusal: "I can't." })]) {
      const provider = await openProvider([answer]);
      const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: provider.url }) });
      assert.equal((await rejection(agent.call("hello", { sessionId: "s" }))).code, "MODEL_REFUSED");
      await provider.close();
    }
  },
);

// R67

story(
  "an error of a custom model is classified like an error of a provider",
  async ({ createAgent, modelOf, rejection, assert }) => {
    const thrown = (message, more = {}) => Object.assign(new Error(message), more);
    const cases = [
      [thrown("no", { statusCode: 401 }), "MODEL_AUTH"],
      [thrown("no", { status: 429, responseHeaders: { "retry-after": "0" } }), "MODEL_RATE_LIMIT"],
      [thrown("no", { statusCode: 400, responseBody: '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}' }), "MODEL_CONTEXT_OVERFLOW"],
      [new TypeError("fetch failed"), "MODEL_NETWORK"],
      [thrown("overloaded_error"), "MODEL_OVERLOADED"],
      [thrown("the key sk-abcdefghijklmnop is odd"), "MODEL_FAILED"],
    ];
    for (const [error, code] of cases) {
      const model = modelOf(async function* () {
        throw error;
      });
      const agent = await createAgent({ name: "helper", model, retries: { attempts: 1 } });
      const failed = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(failed.code, code);
      assert.equal(failed.cause, error);
      assert.doesNotMatch(failed.message, /sk-abc/);
    }
  },
);

// M-16
story(
  "a failed request of a page names the most likely reason",
  async ({ createAgent, openai, rejection, assert }) => {
    const fetch = async () => {
      throw new TypeError("Failed to fetch");
    };
    const ask = async (baseUrl) => {
      const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl, fetch }), retries: { attempts: 1 } });
      return rejection(agent.call("hello", { sessionId: "s" }));
    };
    Object.assign(globalThis, { document: {}, location: { protocol: "https:", origin: "https://page.example" } });
    const mixed = await ask("http://models.example/v1");
    assert.equal(mixed.code, "MODEL_NETWORK");
    assert.match(mixed.hint, /mixed content/);
    assert.match((await ask("https://models.example/v1")).hint, /models\.example is down, the connection was lost, or it does not allow this page's origin \(CORS/);
    assert.match((await ask("http://127.0.0.1:11434/v1")).hint, /CORS/);
    assert.match((await ask("https://page.example/v1")).hint, /check baseUrl/);
  },
);

// M-16
story(
  "a connection that is lost after an answer could be read is not called CORS",
  async ({ createAgent, openai, rejection, assert }) => {
    const head = { headers: { "content-type": "text/event-stream" } };
    const broken = () => new ReadableStream({ pull: (stream) => stream.error(new TypeError("network error")) });
    const answers = [
      () => new Response(broken(), head),
      () => {
        throw new TypeError("Failed to fetch");
      },
    ];
    const fetch = async () => answers.shift()();
    Object.assign(globalThis, { document: {}, location: { protocol: "https:", origin: "https://page.example" } });
    const agent = await createAgent({ name: "helper", model: openai({ model: "m", baseUrl: "https://models.example/v1", fetch }), retries: { attempts: 1 } });
    for (const what of ["the connection to the provider broke", "the provider cannot be reached"]) {
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(error.code, "MODEL_NETWORK");
      assert.ok(error.message.startsWith(what), error.message);
      assert.doesNotMatch(error.hint, /CORS/);
    }
  },
);

// M-18, X-06
story(
  "a secret is redacted from a stream in each of its forms and for every cut, and nothing else is",
  async ({ assert }) => {
    const { Secrets } = await import(new URL("host/secrets.js", import.meta.resolve("lockgate/package.json").replace("package.json", "dist/")).href);
    const key = "canary/KEY+9=3&x";
    const secrets = new Secrets();
    secrets.add(key);
    secrets.add("short");
    const forms = [key, encodeURIComponent(key), btoa(key), btoa(`a${key}b`), btoa(`ab${key}`), key.replace("&", "\\u0026"), key.replace("/", "\\/")];
    const text = `short canary/KE ${forms.join(" canary ")} canary/KEY+9=3& canary`;
    const bytes = new TextEncoder().encode(text);
    const read = (pieces) => {
      const filter = secrets.filter();
      const out = [...pieces.map((piece) => filter.push(piece)), filter.end()];
      return out.map((piece) => new TextDecoder().decode(piece)).join("");
    };
    const whole = read([bytes]);
    assert.match(whole, /^short canary\/KE \[redacted\] canary /);
    assert.match(whole, / canary\/KEY\+9=3& canary$/, "the beginning of a secret is not redacted");
    assert.equal(whole.match(/\[redacted\]/g).length, forms.length);
    for (let at = 0; at <= bytes.length; at++) assert.equal(read([bytes.slice(0, at), bytes.slice(at)]), whole, `cut at ${at}`);
    assert.equal(read([...bytes].map((byte) => Uint8Array.of(byte))), whole);
    assert.equal(secrets.text(text), whole);
  },
);

story(
  "options of a provider's model that Rust cannot read fail the call with OPTIONS, a reason and a hint",
  async ({ createAgent, rejection, assert }) => {
    const withProvider = (provider) => Object.defineProperty({ id: "m" }, Symbol.for("lockgate.kind"), { value: { kind: "model", id: "m", provider } });
    const failureOf = async (provider) => {
      const agent = await createAgent({ name: "helper", model: withProvider(provider) });
      return rejection(agent.call("Hello", { sessionId: "s" }));
    };
    const misread = [
      ["no JSON", /the options of the model is not plain JSON/],
      ['{"dialect":"nobody","model":"m"}', /the options of the model at dialect: expected/],
    ];
    for (const [plain, message] of misread) {
      const error = await failureOf({ plain });
      assert.equal(error.code, "OPTIONS");
      assert.match(error.message, message);
      assert.ok(error.hint);
    }
    const cause = new Error("the options are gone");
    const thrown = await failureOf({ get plain() { throw cause; } });
    assert.equal(thrown.code, "OPTIONS");
    assert.match(thrown.message, /the options of the model: the options are gone/);
    assert.equal(thrown.cause, cause);
    assert.match(thrown.hint, /HttpModelOptions/);
  },
);
