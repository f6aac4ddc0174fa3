// Structured output, and options of a single call, with the packed package.
import { story } from "../support/project.mjs";

story(
  "an answer matches the output schema and has the schema's defaults",
  async ({ createAgent, customModel, schemaOf, assert }) => {
    const model = customModel({
      id: "m",
      async *generate({ tools }) {
        yield { type: "tool-call", index: 0, name: tools.at(-1).name, arguments: '{"city":"Bern"}' };
      },
    });
    const agent = await createAgent({ name: "helper", model });
    const plain = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const reply = await agent.call("where?", { sessionId: "s", outputSchema: plain });
    assert.deepEqual(reply.output, { city: "Bern" });
    const outputSchema = schemaOf(plain, (value) => ({ value: { country: "CH", ...value } }));
    const call = agent.stream("where?", { sessionId: "s", outputSchema });
    assert.deepEqual((await call.result).output, { country: "CH", city: "Bern" });
    const picky = schemaOf(plain, () => ({ issues: [{ message: "not there", path: ["city"] }] }));
    const error = await agent.call("where?", { sessionId: "s", outputSchema: picky }).catch((error) => error);
    assert.equal(error.code, "OUTPUT_INVALID");
    assert.match(error.message, /city: not there/);
  },
);

story(
  "a model that does not follow the output schema fails the call with OUTPUT_INVALID",
  async ({ createAgent, customModel, lines, assert }) => {
    let asked = 0;
    const model = customModel({
      id: "m",
      async *generate() {
        asked += 1;
        yield { type: "text", text: "somewhere" };
      },
    });
    const agent = await createAgent({ name: "helper", model });
    const outputSchema = { type: "object", properties: {}, required: ["city"] };
    const error = await agent.call("where?", { sessionId: "s", outputSchema }).catch((error) => error);
    assert.deepEqual([error.code, asked], ["OUTPUT_INVALID", 2]);
    assert.deepEqual(lines(await agent.history({ sessionId: "s" })), ["user: where?"]);
    const wrong = await agent.call("where?", { sessionId: "s", outputSchema: { type: 5 } }).catch((error) => error);
    assert.equal(wrong.code, "INPUT_INVALID");
  },
);

story(
  "a call may have its own model and options",
  async ({ createAgent, customModel, readAll, assert }) => {
    const seen = [];
    const modelOf = (id) =>
      customModel({
        id,
        async *generate({ generate }) {
          seen.push([id, generate]);
          yield { type: "text", text: id };
        },
      });
    const agent = await createAgent({ name: "helper", model: modelOf("own"), generate: { temperature: 1, topP: 0.5 } });
    assert.equal((await agent.call("hi", { sessionId: "s" })).text, "own");
    const events = await readAll(agent.stream("hi", { sessionId: "s", model: modelOf("other"), generate: { temperature: 0 } }));
    assert.equal(events.find(({ type }) => type === "model-start").model, "other");
    assert.equal(events.at(-1).reply.text, "other");
    assert.deepEqual(seen, [
      ["own", { temperature: 1, topP: 0.5 }],
      ["other", { temperature: 0, topP: 0.5 }],
    ]);
    const wrong = await agent.call("hi", { sessionId: "s", model: {} }).catch((error) => error);
    assert.equal(wrong.code, "INPUT_INVALID");
  },
);
