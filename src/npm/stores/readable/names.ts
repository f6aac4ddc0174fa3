// Names of the folders and files of readable logs. A name follows from the key of a record alone.
//
// An id stays readable: `alice`, `order-17`. Every byte that is unsafe in some file system is written as `%` and two hex digits,
// so `decodeURIComponent` gives the id back. Capital letters are unsafe too, because some file systems ignore the case. An id that
// is too long for a key has a hash in its key, and `~` and this hash as its name; `sessions.json` has the whole id.

const FORMAT = "1.";
const RESERVED_BY_WINDOWS = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/;

/** The folder that holds the readable logs of all agents. No key may begin with it. */
export const LOGS_FOLDER = "agents";

/** The folders of a user's readable logs, below the folder of the store; undefined if the partition is not one of an agent. */
export function foldersOf(partition: string): readonly string[] | undefined {
  const [agent = "", user = ""] = partition.split("/");
  if (!agent.startsWith(FORMAT)) return undefined;
  const names = [nameOf(agent.slice(FORMAT.length)), user === "anonymous" ? user : nameOf(user)];
  return names.includes(undefined) ? undefined : [LOGS_FOLDER, ...(names as string[]), "sessions"];
}

/** The name of a session's log, from the part of its keys that encodes the session id. */
export function logName(session: string): string {
  // A part that we do not know is escaped like an id.
  return `${nameOf(session) ?? escape(Buffer.from(session))}.log.jsonl`;
}

/** The name of an id, from the part of a key that encodes it. */
function nameOf(part: string): string | undefined {
  if (part.startsWith("h.")) return `~${part.slice(2)}`;
  if (!part.startsWith("t.")) return undefined;
  return escape(Buffer.from(part.slice(2).replace(/[^-]|-(..)/g, (one, hex) => hex ?? one.charCodeAt(0).toString(16)), "hex"));
}

function escape(id: Uint8Array): string {
  const last = id.length - 1;
  const name = Array.from(id, (byte, at) => {
    const char = String.fromCharCode(byte);
    // A name that begins with `.` is hidden, one that begins with `-` looks like an option, and Windows drops a `.` at the end.
    const isPlain = /[a-z0-9_]/.test(char) || (char === "-" && at > 0) || (char === "." && at > 0 && at < last);
    return isPlain ? char : escaped(byte);
  }).join("");
  return RESERVED_BY_WINDOWS.test(name) || name === "anonymous" ? `${escaped(name.charCodeAt(0))}${name.slice(1)}` : name;
}

const escaped = (byte: number): string => `%${byte.toString(16).padStart(2, "0")}`;
