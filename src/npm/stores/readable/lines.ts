// The lines of readable logs: one line of JSON per message, and one per session.

/** A message as the log has it. Other members of the message are kept. */
interface LoggedMessage {
  readonly id: string;
  readonly role: string;
  readonly at?: string;
  readonly content: readonly { readonly type?: string; readonly text?: string }[];
}

/** The members of an entry of the log that a line shows: see `src/store/format/entry.rs`. */
interface Entry {
  readonly parent: string | null;
  readonly kind: string;
  readonly callId?: string;
  readonly messages: readonly LoggedMessage[];
  readonly changes?: readonly unknown[];
  readonly outcome?: unknown;
}

/** A line of the session list: see `src/store/session/batches.rs`. */
interface Session {
  readonly sessionId: string;
  readonly userId?: string | null;
  readonly title?: string;
  readonly summary?: string;
  readonly messages?: number;
  readonly branches?: number;
  readonly asking?: boolean;
  readonly createdAt?: string;
  readonly updatedAt?: string;
}

/** The lines of one entry, `<number>.<id>`. A summary is no message of the conversation, so it has none. */
export function linesOfEntry(name: string, value: Uint8Array): string {
  const { parent, kind, callId, messages, changes, outcome } = parse(value) as Entry;
  if (kind === "summary") return "";
  const lines = messages.map(({ id, role, at, ...rest }, index) =>
    line({
      id,
      role,
      at,
      text: textOf(rest.content),
      ...rest,
      entry: name,
      parent,
      kind,
      callId: callId === "" ? undefined : callId,
      // Later states of tool calls in earlier messages. Their lines are never rewritten.
      changes: index === 0 ? changes : undefined,
      outcome: index === messages.length - 1 ? outcome : undefined,
    }),
  );
  return lines.map((each) => `${each}\n`).join("");
}

/** The line of a session, with the name of its log. */
export function lineOfSession(value: Uint8Array, log: string): string {
  const { sessionId, userId = null, title = "", summary = "", messages = 0, branches = 0, asking = false, createdAt, updatedAt } = parse(value) as Session;
  return line({ sessionId, userId, title, summary, messages, branches, asking, createdAt, updatedAt, log });
}

const parse = (value: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(value));

// Characters that end a line for some programs, or that a terminal obeys, are escaped although JSON does not ask for it.
const line = (value: unknown): string =>
  JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

const textOf = (content: LoggedMessage["content"]): string =>
  content.map((block) => (block.type === "text" ? (block.text ?? "") : "")).join("");
