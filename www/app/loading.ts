// The progress of loading the wasm.

/** The number of wasm files. They load one after the other. */
const N_FILES = 2;

/**
 * Runs `work` and reports the loaded part of the wasm, from 0 to 1. The package fetches its wasm by itself and reports no
 * progress, so the page wraps `fetch` for that time and counts the bytes.
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
      // The content-length of a compressed response is less than the number of bytes read.
      tell(Math.min(n / total, 1));
      stream.enqueue(piece);
    },
  });
  return new Response(response.body.pipeThrough(count), response);
}
