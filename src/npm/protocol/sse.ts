// Writes server-sent events as bytes, with a heartbeat while there are no events.

/** One event on the wire. */
export interface Frame {
  /** The number of the event. Absent for frames without one. */
  readonly id?: number | undefined;
  /** The content, usually JSON. */
  readonly data: string;
}

const encoder = new TextEncoder();
const HEARTBEAT = encoder.encode(": keep-alive\n\n");

/** The text of an event on the wire. */
export function written({ id, data }: Frame): string {
  return `${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
}

/** The frames as the bytes of a body. Cancelling the body calls `return` of the frames, also while a frame is awaited. */
export function bodyOf(frames: AsyncIterator<readonly Frame[], undefined>, heartbeatMs: number): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<readonly Frame[], undefined>> | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      next ??= frames.next();
      const found = await within(next, heartbeatMs);
      if (found === undefined) return controller.enqueue(HEARTBEAT);
      next = undefined;
      if (found.done === true) return controller.close();
      // A pull must add bytes. After an empty pull the stream does not pull again, and the read would never end.
      controller.enqueue(found.value.length === 0 ? HEARTBEAT : encoder.encode(found.value.map(written).join("")));
    },
    async cancel() {
      await frames.return?.();
    },
  });
}

/** The value of a promise, or undefined after `ms`. */
function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    promise.then(
      (value) => (clearTimeout(timer), resolve(value)),
      (error: unknown) => (clearTimeout(timer), reject(error)),
    );
  });
}
