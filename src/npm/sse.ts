// Server-sent events: writing them as bytes, with a sign of life while nothing happens, and reading them.

/** One event on the wire. */
export interface Frame {
  readonly id?: number | undefined;
  readonly data: string;
}

const encoder = new TextEncoder();
const HEARTBEAT = encoder.encode(": keep-alive\n\n");

/** How an event looks on the wire. */
export function written({ id, data }: Frame): string {
  return `${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
}

/** Frames as the bytes of a body. Cancelling it is `return` of the frames, also while they are waited for. */
export function bodyOf(frames: AsyncIterator<readonly Frame[], undefined>, heartbeatMs: number): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<readonly Frame[], undefined>> | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      next ??= frames.next();
      const found = await within(next, heartbeatMs);
      if (found === undefined) return controller.enqueue(HEARTBEAT);
      next = undefined;
      if (found.done === true) return controller.close();
      // A read that is answered with nothing would wait for ever.
      controller.enqueue(found.value.length === 0 ? HEARTBEAT : encoder.encode(found.value.map(written).join("")));
    },
    async cancel() {
      await frames.return?.();
    },
  });
}

/** What a promise resolves with, or undefined if that takes too long. */
function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    promise.then(
      (value) => (clearTimeout(timer), resolve(value)),
      (error: unknown) => (clearTimeout(timer), reject(error)),
    );
  });
}

/** The events of a body as they come; leaving cancels it. */
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
