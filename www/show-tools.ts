// Tools that show what a page can: a long result, a picture, one that comes piece by piece, and one that a person hands in.
import { tool } from "lockgate";

export const report = tool({
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

export const picture = tool({
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

/** Nobody here can do it: the result comes from whoever is asked. */
export const askKeeper = tool({
  name: "ask_keeper",
  description: "Asks the lock keeper something. The person at the page answers in the keeper's place.",
  inputSchema: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
  readOnly: true,
});
