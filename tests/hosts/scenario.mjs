// What every browser and runtime must be able to do: steps that run in a page, in a worker, in Node, Deno and Bun. This module is
// sent to pages, so it imports nothing. `lockgate` is the package.

/** A user with a session for each step. */
const of = (sessionId) => ({ userId: "ada", sessionId });

/** A model that repeats the question. "use NAME JSON" calls a tool, "count" counts until it is stopped. */
function talker({ customModel, textOf }) {
  return customModel({
    id: "talker",
    contextWindow: 100_000,
    async *generate({ messages }, { signal }) {
      const last = messages.at(-1);
      const asked = textOf(last);
      const use = last.role === "user" ? /^use (\w+) (.*)$/s.exec(asked) : null;
      if (use) {
        yield { type: "tool-call", index: 0, id: `call-${messages.length}`, name: use[1], arguments: use[2] };
        yield { type: "finish", reason: "tool-calls" };
        return;
      }
      if (asked === "count") {
        for (let n = 0; !signal.aborted; n += 1) {
          yield { type: "text", text: `${n} ` };
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        return;
      }
      if (asked.startsWith("Shorten: ")) return yield { type: "text", text: "a short text" };
      const outputs = last.content.filter(({ type }) => type === "tool_result").map(({ output }) => textOf(output));
      yield { type: "text", text: last.role === "tool" ? "the tool said: " : "you said: " };
      yield { type: "text", text: last.role === "tool" ? outputs.join() : asked };
      yield { type: "finish", reason: "stop" };
    },
  });
}

function toolsFor({ tool }) {
  const text = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  return [
    tool({ name: "upper", description: "Writes in capitals.", inputSchema: text, execute: ({ text }) => text.toUpperCase() }),
    tool({ name: "careful", description: "Needs approval.", inputSchema: text, needsApproval: true, execute: ({ text }) => `did ${text}` }),
    tool({ name: "outside", description: "Runs elsewhere.", inputSchema: text }),
    tool({ name: "broken", description: "Throws.", inputSchema: text, execute: () => { throw new Error("it broke"); } }),
  ];
}

/** Makes the agent of the scenario. `host.store` makes a store that survives a restart. */
export function agentFor(lockgate, host) {
  const { store } = host;
  const compaction = { triggerMessages: 0, triggerTokens: 0, prompt: "Shorten: {messages}" };
  return lockgate.createAgent({ name: "scenario", model: talker(lockgate), tools: toolsFor(lockgate), workspace: true, memory: { flush: "never" }, compaction, store: store?.(lockgate) });
}

function is(found, wanted, what = "") {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${what} ${one} instead of ${other}`);
}
const has = (found, pattern) => {
  if (!pattern.test(String(found))) throw new Error(`${found} does not have ${pattern}`);
};
const failure = (work) => work.then(() => "no error", ({ code, name }) => code ?? name);

/** The steps before the restart. Each is `[name, (agent, lockgate, host) => …]`. */
const BEFORE = [
  ["a call", async (agent) => is((await agent.call("hello", of("call"))).text, "you said: hello")],
  ["a tool", async (agent) => is((await agent.call('use upper {"text":"abc"}', of("tool"))).text, "the tool said: ABC")],
  ["a tool that throws", async (agent) => has((await agent.call('use broken {"text":"abc"}', of("broken"))).text, /it broke/)],
  ["a stream", async (agent) => {
    const types = new Set();
    let text = "";
    for await (const event of agent.stream("hello", of("stream"))) {
      types.add(event.type);
      if (event.type === "text-delta") text += event.delta;
    }
    is(text, "you said: hello");
    for (const type of ["accepted", "text-delta", "saved", "call-end"]) if (!types.has(type)) throw new Error(`no ${type}`);
  }],
  ["a stream as a response", async (agent) => has(await agent.stream("hello", of("response")).toResponse().text(), /event: call-end|"call-end"/)],
  ["stop", async (agent) => {
    const call = agent.stream("count", of("stop"));
    for await (const event of call) if (event.type === "text-delta") call.stop();
    const reply = await call.result;
    is(reply.reason, "interrupted");
    has(reply.text, /^0 /);
  }],
  ["interrupt", async (agent) => {
    const call = agent.stream("count", of("interrupt"));
    let isTold = false;
    for await (const event of call) {
      if (event.type === "text-delta" && !isTold) isTold = await agent.interrupt(of("interrupt"));
    }
    is([isTold, (await call.result).reason], [true, "interrupted"]);
  }],
  ["abort", async (agent) => {
    const stop = new AbortController();
    const call = agent.stream("count", { ...of("abort"), signal: stop.signal });
    const ended = failure(call.result);
    const read = (async () => {
      for await (const event of call) if (event.type === "text-delta") stop.abort();
    })();
    await read.catch(() => {});
    is(await ended, "ABORTED");
  }],
  ["twenty calls at once on one session", async (agent) => {
    const names = Array.from({ length: 20 }, (_, n) => `question ${n}`);
    await Promise.all(names.map((name) => agent.call(name, of("queue"))));
    const said = (await agent.history(of("queue"))).filter(({ role }) => role === "user").map(({ content }) => content[0].text);
    is(said, names);
  }],
  ["twenty sessions at once", async (agent) => {
    const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => agent.call(`in ${n}`, { userId: "many", sessionId: `s${n}` })));
    is(replies.map(({ text }) => text), Array.from({ length: 20 }, (_, n) => `you said: in ${n}`));
    is((await agent.listSessions("many")).length, 20);
  }],
  ["a call that is sent again", async (agent) => {
    const once = await agent.call("hello", { ...of("again"), callId: "c1" });
    const twice = await agent.call("hello", { ...of("again"), callId: "c1" });
    is([twice.text, (await agent.history(of("again"))).length], [once.text, 2]);
  }],
  ["list and rename", async (agent) => {
    await agent.call("first words", of("list"));
    is((await agent.session(of("list"))).title, "first words");
    await agent.renameSession(of("list"), "renamed");
    is((await agent.listSessions("ada"))[0].title, "renamed");
  }],
  ["search", async (agent) => {
    await agent.call("a pelican in the harbour", of("search"));
    await agent.drain();
    is((await agent.search("pelican", { userId: "ada" })).map(({ slot }) => slot.sessionId)[0], "search");
  }],
  ["compaction and undo", async (agent) => {
    for (let n = 0; n < 4; n += 1) await agent.call(`message ${n} ${"word ".repeat(50)}`, of("compact"));
    const before = (await agent.getAgentState(of("compact"))).context.length;
    const report = await agent.compact(of("compact"));
    if (!(report.messagesAfter < report.messagesBefore)) throw new Error(JSON.stringify(report));
    await agent.undoCompaction(of("compact"));
    is([(await agent.getAgentState(of("compact"))).context.length, (await agent.history(of("compact"))).length], [before, 8]);
  }],
  ["resend and branches", async (agent) => {
    await agent.call("one", of("resend"));
    is((await agent.resend(of("resend"), { input: "two" }).result).text, "you said: two");
    const other = (await agent.branches(of("resend"))).find(({ current }) => !current);
    await agent.switchBranch(of("resend"), other.id);
    is((await agent.history(of("resend"))).at(-1).content[0].text, "you said: one");
  }],
  ["fork", async (agent) => {
    await agent.call("shared", of("fork"));
    await agent.fork(of("fork"), of("forked"));
    is((await agent.history(of("forked"))).length, 2);
  }],
  ["export and import", async (agent) => {
    await agent.call("packed", of("export"));
    for (const format of ["lockgate", "agentscope"]) {
      const text = await agent.exportSession(of("export"), format);
      await agent.importSession(of(`import-${format}`), text);
      is((await agent.history(of(`import-${format}`))).length, 2, format);
    }
  }],
  ["an approval", async (agent) => {
    const asked = await agent.call('use careful {"text":"it"}', of("approval"));
    is([asked.reason, asked.asks.length], ["asking", 1]);
    const reply = await agent.confirm(of("approval"), [{ toolCallId: asked.asks[0].toolCallId, approve: true }]).result;
    is(reply.text, "the tool said: did it");
  }],
  ["a tool that runs elsewhere", async (agent) => {
    const asked = await agent.call('use outside {"text":"it"}', of("outside"));
    is(asked.reason, "suspended");
    const reply = await agent.confirm(of("outside"), [{ toolCallId: asked.asks[0].toolCallId, output: "from outside" }]).result;
    is(reply.text, "the tool said: from outside");
  }],
  ["the workspace", async (agent) => {
    await agent.call('use write_file {"path":"notes.txt","content":"kept here"}', of("files"));
    is(await agent.files.read("ada", "notes.txt"), "kept here");
    has((await agent.call('use read_file {"path":"notes.txt"}', of("files"))).text, /kept here/);
  }],
  ["memory", async (agent) => {
    await agent.call('use memory_save {"content":"likes rain"}', of("memory"));
    const names = await agent.files.list("ada");
    if (!names.some((name) => /^memory/i.test(name))) throw new Error(names.join());
  }],
  ["a subscription", async (agent) => {
    const missing = new Set(["session-changed", "call-start", "text-delta", "call-end"]);
    let leave;
    const heard = new Promise((resolve) => {
      leave = agent.subscribe({ userId: "ada" }, ({ type }) => missing.delete(type) && missing.size === 0 && resolve());
    });
    await agent.call("hello", of("subscribe"));
    await heard;
    leave();
  }],
  ["typed errors", async (agent, lockgate) => {
    is(await failure(agent.call("x", { sessionId: "" })), "ID_INVALID");
    is(await failure(agent.exportSession(of("none"))), "NO_SUCH_SESSION");
    is(await failure(lockgate.createAgent({ name: "x", nonsense: 1, model: lockgate.demoModel() })), "OPTIONS");
  }],
  ["the storage report", async (agent, _, host) => has((await agent.storage()).store, host.storage)],
  ["deletion", async (agent) => {
    await agent.call("to be deleted", of("delete"));
    await agent.deleteSession(of("delete"));
    is([await agent.session(of("delete")), (await agent.history(of("delete"))).length], [null, 0]);
    await agent.deleteUser("many");
    is((await agent.listSessions("many")).length, 0);
  }],
  ["a question that is asked when the program ends", async (agent) => {
    // The call goes on until the page or the process is gone.
    const call = agent.stream("count", of("cut"));
    call.result.catch(() => {});
    const reader = call.toReadableStream().getReader();
    while ((await reader.read()).value.type !== "text-delta");
  }],
];

/** The steps after a reload of the page, or in a new process. */
const AFTER = [
  ["after a restart the sessions are there", async (agent) => {
    is((await agent.history(of("queue"))).length, 40);
    is((await agent.call("still here?", of("queue"))).text, "you said: still here?");
    is(await agent.files.read("ada", "notes.txt"), "kept here");
  }],
  ["after a restart the question that was cut off is there, and its turn is continued", async (agent) => {
    const [question] = await agent.history(of("cut"));
    is([question.content[0].text, question.turn], ["count", "interrupted"]);
    is((await agent.session(of("cut"))).interrupted, true);
    const call = agent.resume(of("cut"));
    for await (const event of call) if (event.type === "text-delta") call.stop();
    await call.result;
    is((await agent.session(of("cut"))).interrupted, false);
  }],
];

async function run(steps, lockgate, host) {
  const agent = await agentFor(lockgate, host);
  const results = [];
  for (const [name, work] of steps) {
    const error = await work(agent, lockgate, host).then(() => null, (error) => String(error?.stack ?? error));
    results.push({ name, error });
  }
  return { agent, results };
}

/** Runs the steps before the restart. The last one leaves a call running. */
export const before = async (lockgate, host) => (await run(BEFORE, lockgate, host)).results;

/** Runs the steps after the restart. */
export async function after(lockgate, host) {
  const { agent, results } = await run(AFTER, lockgate, host);
  await agent.close();
  return results;
}
