// The cost of checkpoints: processor time of calls that stream for seconds, and time of calls that end before the first checkpoint.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { createAgent, customModel } from "../../dist/entry/node.js";
import { fileStore } from "../../dist/stores/node.js";
import { median } from "../stats.mjs";
import { question, word } from "../script.mjs";

/** The time between two deltas of a streamed answer. */
const DELTA_MS = 20;

export async function measure(_name, { nCalls, forMs, nShort }) {
  // The two settings take turns, so that a machine that becomes slower meanwhile slows both.
  const [on, off] = [{}, { checkpointMs: false }];
  const long = [];
  for (const options of [off, on, on, off]) long.push([options, await streaming(options, { nCalls, forMs })]);
  const cpu = (of) => long.filter(([options]) => options === of).reduce((sum, [, ms]) => sum + ms, 0) / 2;
  const short = await shortCalls([on, off], nShort);
  return { "checkpoint.cost": (100 * (cpu(on) - cpu(off))) / (nCalls * forMs), "checkpoint.short": short[0] / short[1] };
}

/** Processor time of calls that stream at once, in ms. */
async function streaming(options, { nCalls, forMs }) {
  const paced = async function* () {
    for (const end = performance.now() + forMs; performance.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, DELTA_MS));
      yield { type: "text", text: word };
    }
  };
  return withAgent(options, paced, async (agent) => {
    await agent.call(question(0), { sessionId: "warm" });
    const before = process.cpuUsage();
    await Promise.all(Array.from({ length: nCalls }, (_, n) => agent.call(question(n), { sessionId: `s${n}` })));
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
}

/** The median times of short calls with each of two options, in ms. */
async function shortCalls([one, other], n) {
  const atOnce = async function* () {
    yield { type: "text", text: word };
  };
  const times = [[], []];
  const timed = async (agent, at, found) => {
    const start = performance.now();
    await agent.call(question(at), { sessionId: `s${at % 10}` });
    found.push(performance.now() - start);
  };
  await withAgent(one, atOnce, (first) =>
    withAgent(other, atOnce, async (second) => {
      for (let at = 0; at < n; at++) {
        await timed(first, at, times[0]);
        await timed(second, at, times[1]);
      }
    }),
  );
  return times.map(median);
}

async function withAgent(options, generate, work) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-bench-"));
  const model = customModel({ id: "paced", generate });
  const agent = await createAgent({ name: "bench", model, store: fileStore(folder), ...options });
  try {
    return await work(agent);
  } finally {
    await agent.close();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}
