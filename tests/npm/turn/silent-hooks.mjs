// Hooks that never settle, in Node, workerd and a page: their deadline, the deadline of the call, stop, abort and deleteSession end the call.
import assert from "node:assert/strict";

const POINTS = ["onCall", "systemPrompt", "reviseContext", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"];

/**
 * For each hook and each way to end a call: how a call ended whose hook never settles, and what the next call of the session
 * answered. The source is written into a program of another process or page, so it can use only its parameters.
 */
export async function silentHooks({ createAgent, customModel, memoryStore, tool }) {
  const points = ["onCall", "systemPrompt", "reviseContext", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"];
  const model = customModel({
    id: "calls a tool",
    async *generate({ messages }) {
      if (messages.at(-1).role === "tool") yield { type: "text", text: "done" };
      else yield { type: "tool-call", index: 0, id: `c${messages.length}`, name: "look", arguments: "{}" };
    },
  });
  const look = tool({ name: "look", description: "Looks.", inputSchema: { type: "object" }, execute: () => "seen" });
  const slot = { userId: "ada", sessionId: "s" };
  const never = new Promise(() => {});
  const late = (work) => {
    let timer;
    const limit = new Promise((resolve) => (timer = setTimeout(resolve, 20_000, "hangs")));
    return Promise.race([work, limit]).finally(() => clearTimeout(timer));
  };
  const ways = {
    hookDeadline: { timeouts: { hook: 1_000 } },
    callDeadline: { timeouts: { call: 3_000 } },
    stop: { act: ({ call }) => call.stop() },
    abort: { act: ({ controller }) => controller.abort() },
    delete: { act: ({ agent }) => agent.deleteSession(slot) },
  };
  const ended = async (point, { timeouts, act }) => {
    let reach;
    const reached = new Promise((resolve) => (reach = resolve));
    let isSilent = true;
    const hook = (value) => {
      if (!isSilent) return point === "systemPrompt" ? value : undefined;
      isSilent = false;
      reach();
      return never;
    };
    const agent = await createAgent({ name: "helper", model, tools: [look], store: memoryStore(), middleware: [{ name: "silent", [point]: hook }], ...(timeouts && { timeouts }) });
    const controller = new AbortController();
    const warnings = [];
    const call = agent.stream("go", { ...slot, signal: controller.signal });
    const reading = (async () => {
      for await (const event of call) if (event.type === "warning" && event.code === "middleware") warnings.push(event.message);
    })().catch(() => {});
    await late(reached);
    const acted = act?.({ call, controller, agent });
    const outcome = await late(call.result.then(({ reason }) => reason, ({ code, message }) => (code === "MIDDLEWARE" ? message : code)));
    await late(Promise.all([acted, reading]));
    const history = await late(agent.history(slot));
    const next = await late(agent.call("next", slot).then(({ text }) => text));
    await late(agent.close());
    return { outcome, warnings, next, asked: history[0]?.content[0].text ?? null };
  };
  const seen = {};
  const runs = points.flatMap((point) => Object.entries(ways).map(async ([way, how]) => ((seen[`${point} ${way}`] = await ended(point, how)))));
  await Promise.all(runs);
  return seen;
}

/** Checks what was seen. */
export function checkSilentHooks(seen) {
  for (const point of POINTS) {
    const late = `${point} of the middleware "silent" did not finish within 1000 ms`;
    // The outcome is stored before onEnd, so there it stays, whatever ends the call.
    const outcomes = { hookDeadline: late, callDeadline: "TIMEOUT", stop: "interrupted", abort: "ABORTED", delete: "NO_SUCH_SESSION" };
    for (const [way, outcome] of Object.entries(outcomes)) {
      const isLate = way === "hookDeadline";
      const expected = {
        outcome: point === "onEnd" ? "stop" : outcome,
        warnings: point === "onEnd" ? [isLate ? late : 'the call did not wait for onEnd of the middleware "silent"'] : [],
        next: "done",
        asked: way === "delete" ? null : "go",
      };
      assert.deepEqual(seen[`${point} ${way}`], expected, `${point}, ended by ${way}`);
    }
  }
}
