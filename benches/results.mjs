// The results: for each row and engine one value per round.
import { median } from "./stats.mjs";

export class Results {
  #values = new Map();
  /** The measures that failed: `{ what, name, problem }`. */
  failures = [];

  add(name, found) {
    for (const [row, value] of Object.entries(found)) {
      if (!this.#values.has(row)) this.#values.set(row, new Map());
      const byEngine = this.#values.get(row);
      byEngine.set(name, [...(byEngine.get(name) ?? []), value]);
    }
  }

  fail(what, name, problem) {
    if (!this.failures.some((one) => one.what === what && one.name === name)) this.failures.push({ what, name, problem });
  }

  has(row) {
    return this.#values.has(row);
  }

  /** The median, the least and the most of all rounds; null if there is none. */
  figure(row, name) {
    const values = this.#values.get(row)?.get(name);
    if (!values) return null;
    return { value: median(values), least: Math.min(...values), most: Math.max(...values), rounds: values.length };
  }

  /** How many times Lockgate is ahead of the engine: the median of the rounds' own ratios, because a round has one weather. */
  ratio({ id, better }, name) {
    const [ours, theirs] = ["lockgate", name].map((one) => this.#values.get(id)?.get(one));
    if (!ours || !theirs || !better) return null;
    const each = theirs.slice(0, ours.length).map((value, at) => (better === "less" ? value / ours[at] : ours[at] / value));
    // A negative value, such as the memory of sessions on disk, has no ratio.
    const known = each.filter((value) => Number.isFinite(value) && value > 0);
    return known.length > 0 ? { value: median(known), least: Math.min(...known), most: Math.max(...known) } : null;
  }
}
