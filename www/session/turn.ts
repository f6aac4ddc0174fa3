// A turn as the page shows it, made from stored messages or from events: the question and the answer.
import { textOf } from "lockgate";
import type { AgentEvent, Msg, Reason } from "lockgate";
import { isMedia, withEvent, withMessage } from "./part.ts";
import type { MediaBlock, Part } from "./part.ts";
import { talk } from "../text/sessions.ts";

export interface Turn {
  /** The id of its first message. */
  readonly key: string;
  /** The ids of its messages. Before it is stored: only the id of the question. */
  readonly ids: readonly string[];
  readonly question: string;
  readonly media: readonly MediaBlock[];
  readonly at: string;
  readonly parts: readonly Part[];
  readonly progress: "sending" | "queued" | "running" | "ended";
  /** What the engine does besides the answer, such as a retry; empty for nothing. */
  readonly busy: string;
  /** Whether the question is stored. Later failures do not remove it from the log. */
  readonly accepted: boolean;
  readonly reason: Reason | null;
  readonly problem: Problem | null;
}

/** What the log does not tell about the end of a turn. */
export type Ending = Partial<Pick<Turn, "reason" | "problem">>;

export interface Problem {
  /** The code of the error; empty if it is none of the engine. */
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  /** Whether the user may mend it in the settings. */
  readonly isForSettings?: boolean;
}

/** A question that was just sent. */
export function asked(key: string, question: string, media: readonly MediaBlock[] = []): Turn {
  const at = new Date().toISOString();
  return { ...blank, key, ids: [key], question, media, at, progress: "sending" };
}

/** The turns of a stored conversation, oldest first. `endings`: what else is known about turns, by their last message. */
export function turnsOf(messages: readonly Msg[], endings: ReadonlyMap<string, Ending>): readonly Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (isQuestion(message)) turns.push(begun(message));
    else if (last) turns[turns.length - 1] = grown(last, message);
    else turns.push(grown({ ...begun(message), ids: [], question: "", media: [] }, message));
  }
  return turns.map((turn) => ({ ...turn, ...endings.get(lastId(turn)) }));
}

/** The turn after one more event of its call. */
export function heard(turn: Turn, event: AgentEvent): Turn {
  const next = { ...turn, parts: withEvent(turn.parts, event) };
  switch (event.type) {
    case "queued":
      return { ...next, progress: "queued" };
    case "accepted":
      return withInput({ ...next, progress: "running", accepted: true }, event.messages[0]);
    case "model-start":
      return { ...next, progress: "running", busy: "" };
    case "retry":
      return { ...next, busy: talk.retry(event.attempt) };
    case "fallback":
      return { ...next, busy: talk.fallback(event.model) };
    case "compaction-start":
      return { ...next, busy: talk.summarising };
    case "compaction-end":
    case "compaction-failed":
      return { ...next, busy: "" };
    case "call-end":
      return { ...next, progress: "ended", busy: "", reason: event.reply.reason };
    case "error":
      return failed(next, event.error);
    default:
      return next;
  }
}

export function failed(turn: Turn, error: unknown): Turn {
  return { ...turn, progress: "ended", busy: "", problem: problemOf(error) };
}

export function lastId(turn: Turn): string {
  return turn.ids.at(-1) ?? turn.key;
}

export function isLive(turn: Turn): boolean {
  return turn.progress !== "ended";
}

export function problemOf(error: unknown): Problem {
  const { code, message, hint } = (error ?? {}) as { readonly [Name in keyof Problem]?: unknown };
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  return { code: text(code), message: String(message ?? error), hint: text(hint) };
}

const blank: Turn = {
  key: "",
  ids: [],
  question: "",
  media: [],
  at: "",
  parts: [],
  progress: "ended",
  busy: "",
  accepted: false,
  reason: null,
  problem: null,
};

/** Notes of the engine are also user messages, with the name `system`. */
function isQuestion(message: Msg): boolean {
  return message.role === "user" && message.name !== "system";
}

function begun(message: Msg): Turn {
  const { id, turn, turnError } = message;
  const reason = turn === "interrupted" ? turn : null;
  const problem = turnError ? problemOf(turnError) : null;
  return withInput({ ...blank, key: id, ids: [id], accepted: true, reason, problem }, message);
}

function withInput(turn: Turn, message: Msg | undefined): Turn {
  if (!message || turn.at) return turn;
  const { content, at } = message;
  return { ...turn, question: textOf(content), media: content.filter(isMedia), at };
}

function grown(turn: Turn, message: Msg): Turn {
  return { ...turn, ids: [...turn.ids, message.id], parts: withMessage(turn.parts, message) };
}
