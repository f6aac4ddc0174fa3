// What is said: messages, their blocks, and what a caller may give.

/** Who says a message. */
export type Role = "user" | "assistant" | "system" | "tool";

/** A piece of a message. */
export type Block =
  | { readonly type: "text"; readonly text: string; readonly provider?: ProviderData }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string; readonly provider?: ProviderData }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly provider?: ProviderData;
      readonly name: string;
      readonly input: unknown;
      readonly state: "pending" | "asking" | "allowed" | "finished";
      /** Why its result is to come from outside, while it is. */
      readonly awaits?: string;
    }
  | {
      readonly type: "tool_result";
      readonly id: string;
      readonly name: string;
      readonly output: readonly Block[];
      readonly state: "success" | "error" | "denied" | "interrupted" | "suspended";
    }
  | Media<"image">
  | Media<"audio">
  | Media<"video">
  | Media<"file">;

/** An image, a sound, a film or a file, by address or in base64. */
export interface Media<T extends string> {
  readonly type: T;
  readonly source: Source;
  readonly name?: string;
}

/** A block of one type. */
export type BlockOf<T extends Block["type"]> = Extract<Block, { readonly type: T }>;

/** What a provider wants back unchanged. Kept, never read. */
export type ProviderData = Readonly<Record<string, unknown>>;

/** Where the bytes of a medium are. */
export type Source =
  | { readonly type: "url"; readonly url: string; readonly mediaType?: string }
  | { readonly type: "base64"; readonly mediaType: string; readonly data: string };

/** A message, as it is stored and sent. */
export interface Msg {
  readonly id: string;
  readonly role: Role;
  readonly content: readonly Block[];
  readonly name?: string;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly usage?: Usage;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** What a model call cost. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly seconds: number;
}

/** What a caller may say: text, one message, or several; ids and times are minted when absent. */
export type Input = string | InputMsg | readonly InputMsg[];

/** A block that a caller may say. */
export type InputBlock = Exclude<Block, { readonly type: "tool_use" | "tool_result" | "thinking" }>;

/** A message as a caller may give it. */
export interface InputMsg {
  readonly role?: "user";
  readonly content: string | readonly InputBlock[];
  readonly id?: string;
  readonly name?: string;
  readonly metadata?: Record<string, unknown>;
}
