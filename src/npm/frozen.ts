// Values that are shared, and so may not be changed.

/** Plain data that nobody can change any more. */
export function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) deepFrozen(member);
    Object.freeze(value);
  }
  return value;
}
