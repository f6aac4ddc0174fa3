// The package logs nothing: after any failure, no message text is in the console or in an error.
import { story } from "../support/testing-build.mjs";

story(
  "V-15, P-07: no failure and no trap puts message text into the console or an error",
  async ({ createAgent, scriptedModel, faultyStore, memoryStore, openai, tool, textOf, assert }, { wasm }) => {
    const printed = [];
    for (const name of ["log", "info", "warn", "error", "debug", "trace"]) console[name] = (...args) => printed.push(args.map(String).join(" "));
    for (const stream of [process.stdout, process.stderr]) {
      const write = stream.write.bind(stream);
      stream.write = (text, ...rest) => (String(text).includes("--- done ---") ? write(text, ...rest) : (printed.push(String(text)), true));
    }
    const said = "canary-7731";
    const errors = [];
    const fail = async (work) => errors.push(await work().then(() => assert.fail("it was expected to fail"), (error) => error));
    const slot = { sessionId: "s", userId: "alice" };

    const agent = await createAgent({ name: "helper", model: scriptedModel([new Error("the provider broke"), "fine", { toolCalls: [{ name: "lost", input: { said } }] }, "so it is"]) , tools: [
      tool({ name: "lost", description: "Fails.", inputSchema: { type: "object" }, execute: () => { throw new Error("no"); } }),
    ] });
    await fail(() => agent.call(`${said} to a model that fails`, slot));
    await agent.call(`${said} to a model that works`, slot);
    await agent.call(`${said} to a tool that fails`, slot);
    await fail(() => agent.call({ role: "user", content: 7, said }, slot));
    await fail(() => agent.call([{ role: said, content: "x" }], slot));
    await fail(() => agent.importSession(slot, `{"lockgate": 1, "history": "${said}"}`));
    await fail(() => agent.call("x", { ...slot, generate: { temperature: { [said]: 1n } } }));

    const broken = await createAgent({ name: "broken", model: scriptedModel(["never kept"]), store: faultyStore(memoryStore(), (operation, n) => (operation === "commit" && n > 1 ? "fail" : "ok")) });
    await fail(() => broken.call(`${said} to a store that fails`, slot));

    const refuses = openai({ model: "m", baseUrl: "http://127.0.0.1:9/v1", fetch: async () => new Response("no such key", { status: 401 }) });
    const online = await createAgent({ name: "online", model: refuses });
    await fail(() => online.call(`${said} to a provider that refuses`, slot));

    const { loadEngine } = await import(wasm);
    const engine = await loadEngine(() => assert.fail("no engine was loaded"));
    const held = await createAgent({ name: "held", model: scriptedModel([() => new Promise(() => {})]) });
    const open = held.stream(`${said} to an engine that traps`, slot);
    for await (const event of open) {
      if (event.type !== "accepted") continue;
      open.detach();
      break;
    }
    const instance = engine.instance();
    await fail(async () => instance.enter(() => instance.core.trap(`a fault that quotes ${said}`)));
    await fail(() => open.result);

    assert.ok(errors.length >= 9);
    for (const error of errors) {
      const whole = [error.message, error.hint, error.stack, String(error.cause), error.cause?.stack].join("\n");
      assert.ok(!whole.includes(said), `an error contains message text: ${whole}`);
    }
    assert.ok(textOf((await agent.history(slot))[0]).includes(said));
    assert.deepEqual(printed, []);
  },
);
