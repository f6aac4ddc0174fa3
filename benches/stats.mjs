// Repeats a measurement, and takes the median.

export const median = (values) => values.toSorted((one, other) => one - other)[values.length >> 1];

export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** The times of `work(n)` in ms: at most `atMost`, and as many as fit into `forMs`, but at least `atLeast`. */
export async function sample(work, { atMost, forMs, atLeast = 3 }) {
  const times = [];
  const start = performance.now();
  while (times.length < atMost && (times.length < atLeast || performance.now() - start < forMs)) {
    const n = times.length;
    times.push(await timed(() => work(n)));
  }
  return times;
}
