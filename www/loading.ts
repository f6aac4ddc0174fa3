// How far the wasm has come, counted while the package fetches it.

/** It comes in so many files, one after the other. */
const N_FILES = 2;

/**
 * Runs `work`, and tells meanwhile what part of the wasm is here, from 0 to 1. The package fetches its wasm by itself
 * and tells nobody, so for that time the page counts the bytes of its own `fetch`.
 */
export async function counted<T>(work: () => Promise<T>, tell: (part: number) => void): Promise<T> {
  const plain = globalThis.fetch;
  let nBefore = 0;
  globalThis.fetch = async (...request) => {
    const response = await plain(...request);
    if (!response.url.endsWith(".wasm")) return response;
    const before = nBefore++;
    return withCount(response, (part) => tell(Math.min((before + part) / N_FILES, 1)));
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
