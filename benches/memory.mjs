// The memory in use after garbage collection.

const turn = () => new Promise((resolve) => setTimeout(resolve, 20));

/** The number of bytes, wasm included. The process must have been started with `--expose-gc`. */
export async function held() {
  for (let n = 0; n < 4; n++) {
    globalThis.gc();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
