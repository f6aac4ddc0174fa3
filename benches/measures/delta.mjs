// The cost of one piece of a streamed answer: in process, in process with a pause before each piece, and from a provider over SSE.
import { open } from "../engines/index.mjs";
import { withProvider } from "../loopback.mjs";
import { median, sample } from "../stats.mjs";
import { Script, question, word } from "../script.mjs";

export async function measure(name, { nDeltas, atMost, forMs }) {
  const at = { nDeltas, atMost, forMs };
  const found = await streamed("delta", await open(name, { script: new Script({ nDeltas }) }), at);
  Object.assign(found, await streamed("paced", await open(name, { script: new Script({ nDeltas, paced: true }) }), at));
  const sse = await withProvider(nDeltas, async (baseUrl) => streamed("sse", await open(name, { baseUrl }), at));
  return { ...found, ...sse };
}

async function streamed(what, engine, { nDeltas, atMost, forMs }) {
  let nEvents = 0;
  const times = await sample(
    async (n) => {
      nEvents = 0;
      let length = 0;
      await engine.stream(`s${n}`, question(n), (text) => {
        nEvents += 1;
        length += text.length;
      });
      if (length !== nDeltas * word.length) throw new Error(`${length} characters came of ${nDeltas * word.length}`);
    },
    { atMost, forMs },
  );
  await engine.close();
  // The first answer is slower in every engine, because its code is compiled while it runs.
  return { [what]: (median(times.slice(1)) / nDeltas) * 1_000, [`${what}.events`]: nEvents };
}
