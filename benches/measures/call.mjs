// The cost of a call by the length of the history before it: microseconds, and bytes given to the store.
import { open } from "../engines/index.mjs";
import { median, sample } from "../stats.mjs";
import { MESSAGES_PER_TURN, Script, question } from "../script.mjs";

/** This many calls are made on a session before the next session is used, so that a short history stays short. */
const CALLS_EACH = { 0: 1, 100: 4 };

export async function measure(name, { lengths, forMs, round = 0 }) {
  const engine = await open(name, { script: new Script() });
  // A minimum number too: on a busy machine few functions get compiled in the given time.
  await sample((n) => engine.call(`warm-${n}`, question(n)), { atMost: 400, atLeast: 60, forMs });
  const found = {};
  for (const length of lengths) found[`call.${length}`] = await microseconds(engine, length, forMs);
  await engine.close();
  if (found["call.10000"]) found.growth = found["call.10000"] / found["call.100"];
  // The number of bytes does not vary between rounds, so one round is enough.
  return round === 0 ? { ...found, ...(await written(name, lengths)) } : found;
}

async function microseconds(engine, length, forMs) {
  const atMost = 40;
  const each = CALLS_EACH[length] ?? atMost;
  const session = (n) => `${length}-${Math.floor(n / each)}`;
  for (let n = 0; n < atMost; n += each) await engine.seed(session(n), length);
  const times = await sample((n) => engine.call(session(n), question(n)), { atMost, forMs });
  return median(times) * 1_000;
}

// Separate from the times, because counting slows some engines down.
async function written(name, lengths) {
  const engine = await open(name, { script: new Script(), counting: true });
  const found = {};
  for (const length of lengths) {
    await engine.seed("counted", length);
    await engine.settled?.();
    engine.bytes();
    const nCalls = 3;
    for (let n = 0; n < nCalls; n++) await engine.call("counted", question(n));
    await engine.settled?.();
    found[`bytes.${length}`] = engine.bytes() / nCalls;
    const { length: kept } = await engine.messages("counted");
    if (kept < length + MESSAGES_PER_TURN * nCalls) throw new Error(`${kept} messages are kept after ${nCalls} calls on ${length}`);
  }
  await engine.close();
  return found;
}
