// Binary search in sorted lists of keys.

/** The index of the first key that is not less than `key`. */
export function lowerBound(sorted: readonly string[], key: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the first key that is greater than `key`. */
export function upperBound(sorted: readonly string[], key: string): number {
  const found = lowerBound(sorted, key);
  return sorted[found] === key ? found + 1 : found;
}
