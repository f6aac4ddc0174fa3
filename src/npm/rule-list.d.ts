// What the build writes as `rule-list.js` from src/store/rules.json, which Rust reads too: one list for both.

/** Text, bytes that are repeated, or every byte there is. */
export type Data = string | { readonly bytes: "every" } | { readonly repeat: string; readonly times: number | "largest"; readonly then?: string };

/** Items of a list, some of them standing for many: `#` in `of` is the number. */
export type Many<T> = readonly (T | { readonly many: number; readonly of: T })[];

export interface RuleBatch {
  readonly expect?: readonly [Data, string | null];
  readonly revision: string;
  readonly put?: Many<readonly [Data, Data]>;
  readonly remove?: Many<Data>;
  readonly removePrefix?: Many<Data>;
}

export type Step = { readonly beside?: true; readonly thenSpoil?: true } & (
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

export interface RuleText {
  readonly rule: string;
  readonly needs?: readonly ("atomic" | "compareAndSet" | "shared")[];
  readonly broken: readonly string[];
  readonly steps: readonly Step[];
}

export const RULES: readonly RuleText[];
