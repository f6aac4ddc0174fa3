// Server-sent events written as bytes, with a sign of life while nothing happens.

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
