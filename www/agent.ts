// The demo agent: an offline model, sessions in IndexedDB, and tools that do what they say.
import { createAgent, demoModel, indexedDbStore, tool } from "lockgate";
import type { Agent } from "lockgate";

export function openAgent(): Promise<Agent> {
  return createAgent({
    name: "lockgate",
    systemPrompt: "You are a brief and friendly assistant.",
    model: demoModel({ delayMs: 15 }),
    store: indexedDbStore("lockgate"),
    workspace: true,
    taskList: true,
    planMode: true,
    compaction: true,
    toolResultEviction: { maxChars: 6_000, previewChars: 600 },
    tools: [clock, add, alwaysFails, sendLetter, report, picture, countDown],
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

const sendLetter = tool<{ readonly text: string }>({
  name: "send_letter",
  description: "Puts a letter on this page's own pile. A person approves it first.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  needsApproval: true,
  execute: ({ text }) => `the letter is on the pile: ${text}`,
});

const report = tool({
  name: "report",
  description: "A log of one day at a lock: far too long for a model to read whole.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => Array.from({ length: 288 }, (_, n) => line(n)).join("\n"),
});

function line(n: number): string {
  const time = `${String(Math.floor(n / 12)).padStart(2, "0")}:${String((n % 12) * 5).padStart(2, "0")}`;
  return `${time}  boat ${n + 1} of 288 passed ${n % 2 ? "down" : "up"}, the water stood at ${(3 + Math.sin(n / 9)).toFixed(2)} m`;
}

const picture = tool({
  name: "picture",
  description: "Draws a lock from above.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: async () => ({
    type: "image",
    name: "a lock from above",
    source: { type: "base64", mediaType: "image/png", data: await drawing() },
  }),
});

async function drawing(): Promise<string> {
  const canvas = new OffscreenCanvas(480, 200);
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("this browser cannot draw");
  pen.fillStyle = "#dbe8e2";
  pen.fillRect(0, 0, 480, 200);
  pen.fillStyle = "#0b5f66";
  pen.fillRect(0, 60, 480, 80);
  pen.strokeStyle = "#f4eee2";
  pen.lineWidth = 8;
  for (const x of [150, 330]) {
    pen.beginPath();
    pen.moveTo(x, 60);
    pen.lineTo(x + 30, 100);
    pen.lineTo(x, 140);
    pen.stroke();
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
}

const countDown = tool<{ readonly from: number }>({
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
