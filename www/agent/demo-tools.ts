// Tools that show kinds of results: a long result, a picture, one that arrives in pieces, and one that the user hands in.
import { tool } from "lockgate";

/** Loaded when one of these tools runs. */
const results = () => import("./demo-results.ts");

export const report = tool({
  name: "report",
  description: "A log of one day at a lock: far too long for a model to read whole.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: async () => (await results()).dayAtLock(),
});

export const picture = tool({
  name: "picture",
  description: "Draws a lock from above.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: async () => ({
    type: "image",
    name: "a lock from above",
    source: { type: "base64", mediaType: "image/png", data: await (await results()).drawing() },
  }),
});

export const countDown = tool<{ readonly from: number }>({
  name: "count_down",
  description: "Counts down, and shows every step.",
  inputSchema: { type: "object", properties: { from: { type: "integer" } }, required: ["from"] },
  readOnly: true,
  execute: async ({ from }, { emit, signal }) => {
    for (let n = Math.min(from, 20); n > 0 && !signal.aborted; n -= 1) {
      emit(`${n}\n`);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    return "the gate is open";
  },
});

/** A tool without `execute`: the user hands in the result. */
export const askKeeper = tool({
  name: "ask_keeper",
  description: "Asks the lock keeper something. The person at the page answers in the keeper's place.",
  inputSchema: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
  readOnly: true,
});
