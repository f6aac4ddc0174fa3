// The demo agent: an offline model, sessions in IndexedDB, and three tools that do what they say.
import { createAgent, demoModel, indexedDbStore, tool } from "lockgate";
import type { Agent } from "lockgate";
import { remoteAgent } from "lockgate/remote";

/** The agent of this page; or that of a worker, if whoever serves the page says where it is. */
export async function openAgent(): Promise<Agent> {
  const remote = document.querySelector<HTMLMetaElement>('meta[name="lockgate-remote"]')?.content;
  if (remote) return remoteAgent({ url: remote });
  return createAgent({
    name: "lockgate",
    systemPrompt: "You are a brief and friendly assistant.",
    model: demoModel({ delayMs: 15 }),
    store: indexedDbStore("lockgate"),
    tools: [clock, add, alwaysFails],
  });
}

const clock = tool({
  name: "clock",
  description: "The time now, on this device.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    return { now: new Date().toISOString(), local: new Date().toLocaleString("en"), timeZone };
  },
});

const add = tool<{ readonly a: number; readonly b: number }>({
  name: "add",
  description: "The sum of two numbers.",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  readOnly: true,
  execute: ({ a, b }) => a + b,
});

const alwaysFails = tool({
  name: "always_fails",
  description: "Throws whenever it is called, to show what a failing tool looks like.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => {
    throw new Error("this tool always fails, on purpose");
  },
});
