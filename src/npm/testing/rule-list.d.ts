// The type of `rule-list.js`, which the build writes from src/store/backend/rules.json. Rust reads the same JSON file.

/** Text, repeated text, or each byte value from 0 to 255. */
export type Data = string | { readonly bytes: "every" } | { readonly repeat: string; readonly times: number | "largest"; readonly then?: string };

/** Items of a list. `{ many, of }` stands for several items; `#` in `of` is replaced by the number of the item. */
export type Many<T> = readonly (T | { readonly many: number; readonly of: T })[];

/** A batch of a rule. Keys and values are written as `Data`. */
export interface RuleBatch {
  /** The expected key and its revision; null means no record. Absent: no condition. */
  readonly expect?: readonly [Data, string | null];
  /** The revision of the batch. */
  readonly revision: string;
  /** Keys and values to write. Default: none. */
  readonly put?: Many<readonly [Data, Data]>;
  /** Keys to remove. Default: none. */
  readonly remove?: Many<Data>;
  /** Prefixes whose keys are removed. Default: none. */
  readonly removePrefix?: Many<Data>;
}

/** One operation of a rule, and what it must answer. `beside`: on the second store. `thenSpoil`: afterwards the bytes are overwritten, which must not change the store. */
export type RuleStep = { readonly beside?: true; readonly thenSpoil?: true } & (
  | { readonly commit: RuleBatch; readonly answers?: "conflict" }
  | { readonly together: Many<RuleBatch>; readonly oneWins?: string }
  | { readonly get: Many<Data>; readonly answers: Many<readonly [Data, string] | null> }
  | {
      readonly list: string;
      readonly after?: string;
      readonly limit?: number;
      readonly keysOnly?: true;
      readonly answers?: Many<readonly [Data, Data, string]>;
      readonly keys?: readonly string[];
      readonly revisions?: readonly string[];
    }
);

/** A rule as it is written in the JSON file. */
export interface RuleText {
  /** A sentence that is true for a correct store. */
  readonly rule: string;
  /** What a store must offer so that the rule applies. Default: nothing. */
  readonly needs?: readonly ("atomic" | "compareAndSet" | "shared")[];
  /** The faults of a store that this rule finds. */
  readonly broken: readonly string[];
  /** The operations, in order. */
  readonly steps: readonly RuleStep[];
}

/** All rules. */
export const RULES: readonly RuleText[];
