// Reads server-sent events. Only clients need this, so it is apart from sse.ts, which writes them.

import type { Frame } from "./sse.js";

/** The events of a body as they arrive. Leaving the loop cancels the body. */
export async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = blocks.pop()!;
      for (const block of blocks) {
        const frame = read(block);
        if (frame !== undefined) yield frame;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function read(block: string): Frame | undefined {
  const data: string[] = [];
  let id: number | undefined;
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!;
    if (name === "data") data.push(value!);
    if (name === "id") id = Number(value);
  }
  return data.length === 0 ? undefined : { id, data: data.join("\n") };
}
