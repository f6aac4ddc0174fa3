// How far the wasm has come, counted while the package fetches it.

/**
 * Runs `work`, and tells meanwhile what part of the wasm is here, from 0 to 1. The package fetches its wasm by itself
 * and tells nobody, so for that time the page counts the bytes of its own `fetch`.
 */
export async function counted<T>(work: () => Promise<T>, tell: (part: number) => void): Promise<T> {
  const plain = globalThis.fetch;
  globalThis.fetch = async (...request) => {
    const response = await plain(...request);
    return response.url.endsWith(".wasm") ? withCount(response, tell) : response;
  };
  try {
    return await work();
  } finally {
    globalThis.fetch = plain;
  }
}

function withCount(response: Response, tell: (part: number) => void): Response {
  const total = Number(response.headers.get("content-length"));
  if (!response.ok || !response.body || !total) return response;
  let n = 0;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, stream) {
      n += piece.length;
      // A compressed answer is longer than its length says.
      tell(Math.min(n / total, 1));
      stream.enqueue(piece);
    },
  });
  return new Response(response.body.pipeThrough(count), response);
}
