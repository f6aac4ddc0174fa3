// Schemas for the inputs of tools and for structured output.

/** Standard JSON Schema (Zod 4.2, Valibot 1.2, ArkType 2.1 …). */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The interface of the Standard Schema specification. */
  readonly "~standard": {
    /** The version of the specification. */
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** The types of the values, for the compiler only. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Checks a value. Returns its output or its issues, or a promise of them. Without it, only the JSON Schema is checked. */
    readonly validate?: ((value: unknown) => unknown) | undefined;
    /** Turns the schema into JSON Schema. `target` is "draft-2020-12". */
    readonly jsonSchema: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

/** A plain JSON Schema object. */
export interface JsonSchema {
  /** Not in a plain JSON Schema: it marks a StandardSchema. */
  readonly "~standard"?: never;
  /** The type of the value, such as "object". */
  readonly type: string;
  /** The other keywords of JSON Schema. */
  readonly [keyword: string]: unknown;
}

/**
 * What a plain JSON Schema is besides: not a schema of a library that cannot turn it into JSON Schema, such as Zod before 4.2. For
 * such a schema the compiler shows the text that is the type of this property.
 */
export interface ConvertibleSchema {
  /** Missing in a plain JSON Schema. */
  readonly "~standard"?: "This schema cannot be turned into JSON Schema: update its library (Zod 4.2, Valibot 1.2, ArkType 2.1), or write plain JSON Schema.";
}

/** A schema of either kind. */
// `any`, so that the input and output of every schema can be inferred.
export type Schema = StandardSchema<any, any> | JsonSchema;

/** The type of the values that a schema accepts, if the schema states it. */
export type InferSchema<S> = [S] extends [never]
  ? undefined
  : S extends StandardSchema<any, any>
    ? NonNullable<S["~standard"]["types"]>["output"]
    : unknown;
