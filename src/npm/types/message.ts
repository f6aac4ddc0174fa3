// Messages, their blocks, and the input of a call.

import type { ErrorCode } from "./error.js";

/** The author of a message. */
export type Role = "user" | "assistant" | "system" | "tool";

/** A part of a message. */
export type Block =
  /** Text. `provider`: data that the provider wants back with it. */
  | { readonly type: "text"; readonly text: string; readonly provider?: ProviderData }
  /** What the model thought before its answer. `signature`: the provider's proof of it. `provider`: data that the provider wants back with it. */
  | { readonly type: "thinking"; readonly thinking: string; readonly signature?: string; readonly provider?: ProviderData }
  /** A tool call of the model. */
  | {
      readonly type: "tool_use";
      /** The id of the tool call. Its result has the same id. */
      readonly id: string;
      /** Data that the provider wants back with the tool call. */
      readonly provider?: ProviderData;
      /** The name of the tool. */
      readonly name: string;
      /** The arguments. */
      readonly input: unknown;
      /** "pending": no result yet. "asking": waits for an approval. "allowed": may run, and waits for other calls of its answer. "finished": has a result. */
      readonly state: "pending" | "asking" | "allowed" | "finished";
      /** Why a person is asked, or why the result must come from outside, while it is missing. */
      readonly awaits?: string;
    }
  /** The result of a tool call. */
  | {
      readonly type: "tool_result";
      /** The id of the tool call. */
      readonly id: string;
      /** The name of the tool. */
      readonly name: string;
      /** What the model reads: the output of the tool, or why there is none. */
      readonly output: readonly Block[];
      /** How the tool call ended. "error": the tool failed. "denied": it did not run. "interrupted": the call was stopped. */
      readonly state: "success" | "error" | "denied" | "interrupted" | "suspended";
    }
  /** An image. */
  | Media<"image">
  /** Audio. */
  | Media<"audio">
  /** A video. */
  | Media<"video">
  /** Another file, such as a PDF. */
  | Media<"file">;

/** An image, audio, video or file, by URL or in base64. */
export interface Media<T extends string> {
  /** The kind of file. */
  readonly type: T;
  /** Where its bytes are. */
  readonly source: Source;
  /** The file name that the user sees. */
  readonly name?: string;
}

/** A block of one type. */
export type BlockOf<T extends Block["type"]> = Extract<Block, { readonly type: T }>;

/** Data that a provider wants back unchanged. It is kept and never read. */
export type ProviderData = Readonly<Record<string, unknown>>;

/** Where the bytes of an image, audio, video or file are. */
export type Source =
  /** A URL from which the provider loads the file. `mediaType`: such as "image/png", if it is known. */
  | { readonly type: "url"; readonly url: string; readonly mediaType?: string }
  /** The bytes themselves. `mediaType`: such as "image/png". `data`: the bytes in base64. */
  | { readonly type: "base64"; readonly mediaType: string; readonly data: string };

/** A message as it is stored and sent. */
export interface Msg {
  /** The id of the message. Generated, unless the input had one. */
  readonly id: string;
  /** The author. Results of tools have the role "tool". */
  readonly role: Role;
  /** The blocks, in order. */
  readonly content: readonly Block[];
  /** The name of the author, if there are several with this role. Notes of the engine to the model have the role "user" and the name "system". */
  readonly name?: string;
  /** When the message was made, in RFC 3339, UTC. */
  readonly at: string;
  /** The tokens and the time of the model request. Only in answers of a model. */
  readonly usage?: Usage;
  /** Your data about the message. The engine writes it only into messages that it makes itself, such as summaries. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Only in questions of a `history`: how the turn stands, if it is not answered. "open": a call runs, or waits for an answer to a tool call. "interrupted": it was stopped, aborted, shut down or cut off by a crash. "failed": it ended in an error. Never stored, and ignored in what you pass in. */
  readonly turn?: "open" | "interrupted" | "failed";
  /** With `turn: "failed"`: the error. */
  readonly turnError?: { readonly code: ErrorCode; readonly message: string };
}

/** The kind of a message that the engine wrote itself, with the role `user` and the name "system": its `metadata.note`. */
export type Note = "cut-off" | "blank-answer" | "task-result" | "left-out";

/** The tokens and the time of a model request. */
export interface Usage {
  /** Tokens of the request, including `cachedTokens`. 0 if the provider does not report them. */
  readonly inputTokens: number;
  /** Tokens of the answer. 0 if the provider does not report them. */
  readonly outputTokens: number;
  /** Tokens of the request that the provider read from its cache. */
  readonly cachedTokens: number;
  /** The time from the request to the end of the answer, in seconds. */
  readonly seconds: number;
}

/** The input of a call: text, a message, or several messages. Missing ids and times are generated. */
export type Input = string | InputMsg | readonly InputMsg[];

/** A block that an input message may contain. */
export type InputBlock = Exclude<Block, { readonly type: "tool_use" | "tool_result" | "thinking" }>;

/** A message of the input of a call. */
export interface InputMsg {
  /** Default "user". */
  readonly role?: "user";
  /** Text, or blocks. */
  readonly content: string | readonly InputBlock[];
  /** The id of the message. Default: a generated one. */
  readonly id?: string;
  /** The name of the author, if several people write. */
  readonly name?: string;
  /** Your data about the message. It is stored with it. */
  readonly metadata?: Record<string, unknown>;
}
