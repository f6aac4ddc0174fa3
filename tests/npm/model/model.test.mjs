// Models that users write, with the packed package: each of their mistakes becomes an error of the call.
import { story } from "../support/project.mjs";

story(
  "a model that fails makes the call fail with the thrown error, and the question is kept",
  async ({ createAgent, modelOf, rejection, lines, assert }) => {
    const thrown = new TypeError("the cable is out");
    const model = modelOf(async function* () {
      yield { type: "text", text: "I was about" };
      throw thrown;
    });
    const agent = await createAgent({ name: "helper", model });
    const error = await rejection(agent.call("hello", { sessionId: "s" }));
    assert.equal(error.code, "MODEL_FAILED");
    assert.equal(error.cause, thrown);
    assert.match(error.message, /the cable is out/);
    assert.equal(error.partial.content[0].text, "I was about");
    const said = ["user: hello", "assistant: I was about"];
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), said);
  },
);

story(
  "every mistake of a model becomes an error of the call and never of the process",
  async ({ createAgent, modelOf, memoryStore, rejection, LockgateError, assert }) => {
    const faults = {
      "throws undefined": async function* () {
        throw undefined;
      },
      "throws a string": async function* () {
        throw "no";
      },
      "yields no delta": async function* () {
        yield { type: "song" };
      },
      "yields null": async function* () {
        yield null;
      },
      "yields a cycle": async function* () {
        const delta = { type: "text", text: "x" };
        yield Object.assign(delta, { delta });
      },
      "yields a big integer": async function* () {
        yield { type: "text", text: 5n };
      },
      "is no generator": () => 5,
      "throws at once": () => {
        throw new Error("at once");
      },
    };
    for (const [name, generate] of Object.entries(faults)) {
      const store = memoryStore();
      const agent = await createAgent({ name: "helper", model: modelOf(generate), store });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.ok(error instanceof LockgateError, name);
      assert.equal(error.code, "MODEL_FAILED", `${name}: ${error.message}`);
      assert.equal((await agent.history({ sessionId: "s" })).length, 1, name);
    }
  },
);

story(
  "a character that a model splits between two deltas arrives whole",
  async ({ createAgent, modelOf, readAll, turns, assert }) => {
    const [high, low] = "😀".split("");
    const model = modelOf(async function* () {
      yield { type: "text", text: `smile ${high}` };
      await turns(1);
      yield { type: "text", text: `${low} please` };
    });
    const agent = await createAgent({ name: "helper", model });
    const events = await readAll(agent.stream("hello", { sessionId: "s" }));
    assert.equal(events.at(-1).reply.text, "smile 😀 please");
    const deltas = events.filter(({ type }) => type === "text-delta").map(({ delta }) => delta);
    assert.equal(deltas.join(""), "smile 😀 please");
  },
);

story(
  "V-09: half a character from a model or a user is replaced, and the call ends well",
  async ({ createAgent, modelOf, assert }) => {
    const model = modelOf(async function* () {
      yield { type: "text", text: "half \ud83d here" };
    });
    const agent = await createAgent({ name: "helper", model });
    const reply = await agent.call("my \ud83d half, and \\ud83d as text", { sessionId: "s" });
    assert.equal(reply.text, "half \ufffd here");
    assert.equal(reply.messages[0].content[0].text, "my \ufffd half, and \\ud83d as text");
  },
);

story(
  "a model request that fails is retried until it succeeds",
  async ({ createAgent, modelOf, readAll, LockgateError, assert }) => {
    let asked = 0;
    const model = modelOf(async function* () {
      if (++asked < 3) throw new LockgateError("MODEL_OVERLOADED", "come back later");
      yield { type: "text", text: "now" };
    });
    const retries = { attempts: 3, initialMs: 0, maxMs: 0 };
    const agent = await createAgent({ name: "helper", model, retries });
    const events = await readAll(agent.stream("hello", { sessionId: "s" }));
    assert.equal(events.at(-1).reply.text, "now");
    const again = events.filter(({ type }) => type === "retry");
    assert.deepEqual(
      again.map(({ attempt, code }) => [attempt, code]),
      [
        [2, "MODEL_OVERLOADED"],
        [3, "MODEL_OVERLOADED"],
      ],
    );
    assert.equal((await agent.history({ sessionId: "s" })).length, 2);
  },
);

story(
  "a model that never starts or stops sending is MODEL_TIMEOUT",
  async ({ createAgent, modelOf, rejection, assert }) => {
    const until = (signal) => new Promise((resolve) => signal.addEventListener("abort", resolve));
    const models = [
      modelOf(async function* (_request, { signal }) {
        await until(signal);
      }),
      modelOf(async function* (_request, { signal }) {
        yield { type: "text", text: "I was about" };
        await until(signal);
      }),
    ];
    for (const model of models) {
      const options = { timeouts: { model: 20 }, retries: { attempts: 1 } };
      const agent = await createAgent({ name: "helper", model, ...options });
      const error = await rejection(agent.call("hello", { sessionId: "s" }));
      assert.equal(error.code, "MODEL_TIMEOUT");
      assert.ok(error.retryable && error.hint);
    }
  },
);
