// The memory of an idle session after five calls, measured with as many sessions as fit into the time.
import { open } from "../engines/index.mjs";
import { held } from "../memory.mjs";
import { Script, question } from "../script.mjs";

const CALLS = 5;
const AT_ONCE = 10;
/** With fewer sessions the result means nothing: the heap varies by more than their memory. */
const AT_LEAST = 200;

export async function measure(name, { nSessions, forMs }) {
  const engine = await open(name, { script: new Script() });
  await talk(engine, "warm", 2 * AT_ONCE);
  const before = await held();
  const start = performance.now();
  let n = 0;
  while (n < nSessions && (n < AT_LEAST || performance.now() - start < forMs)) {
    await talk(engine, `s${n}`, AT_ONCE);
    n += AT_ONCE;
  }
  await engine.settled?.();
  return { "idle.bytes": ((await held()) - before) / n, "idle.sessions": n };
}

function talk(engine, name, nSessions) {
  const one = async (at) => {
    for (let n = 0; n < CALLS; n++) await engine.call(`${name}-${at}`, question(n));
  };
  return Promise.all(Array.from({ length: nSessions }, (_, at) => one(at)));
}
