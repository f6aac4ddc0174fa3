// Places in sorted lists of keys.

/** The first place in a sorted list that is not before `key`. */
export function place(sorted: readonly string[], key: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first place in a sorted list that is behind `key`. */
export function placeAfter(sorted: readonly string[], key: string): number {
  const found = place(sorted, key);
  return sorted[found] === key ? found + 1 : found;
}
