// A thousand calls at once: each on a session of its own, and all on one. Counts lost messages, and answers without the earlier turns.
import { open } from "../engines/index.mjs";
import { timed } from "../stats.mjs";
import { MESSAGES_PER_TURN, Script, question } from "../script.mjs";

export async function measure(name, { nCalls }) {
  return { ...(await apart(name, nCalls)), ...(await together(name, nCalls)) };
}

async function apart(name, nCalls) {
  const engine = await open(name, { script: new Script({ ticks: true }) });
  await all(nCalls / 20, (n) => engine.call(`warm-${n}`, question(n)));
  const ms = await timed(() => all(nCalls, (n) => engine.call(`s${n}`, question(n))));
  await engine.close();
  return { "apart.rate": (nCalls / ms) * 1_000 };
}

async function together(name, nCalls) {
  const script = new Script({ ticks: true });
  const engine = await open(name, { script });
  await engine.seed("one", 0);
  let outcomes;
  const ms = await timed(async () => {
    outcomes = await Promise.allSettled(Array.from({ length: nCalls }, (_, n) => engine.call("one", question(n))));
  });
  const kept = await engine.messages("one");
  await engine.close();
  return {
    "one.rate": (nCalls / ms) * 1_000,
    "one.refused": outcomes.filter(({ status }) => status === "rejected").length,
    "one.lost": Math.max(0, nCalls * MESSAGES_PER_TURN - kept.length),
    "one.torn": nCalls - wholeTurns(kept, nCalls),
    "one.blind": script.seen.filter((nMessages, at) => at > 0 && nMessages <= 1).length,
  };
}

// The number of questions directly followed by their own tool call, its result and the answer.
function wholeTurns(kept, nCalls) {
  const questions = new Set(Array.from({ length: nCalls }, (_, n) => question(n)));
  return kept.filter(({ role, text }, at) => {
    const after = kept.slice(at + 1, at + MESSAGES_PER_TURN).map((message) => message.role);
    return role === "user" && questions.has(text) && after.join() === "assistant,tool,assistant";
  }).length;
}

const all = (n, work) => Promise.all(Array.from({ length: n }, (_, at) => work(at)));
