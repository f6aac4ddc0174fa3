// The files of a workspace, for the host.

import { LockgateError } from "./errors.js";
import { checkId } from "./options.js";
import type { WorkspaceFiles } from "./types.js";

type Ask = <T>(request: string) => Promise<T>;

/** A user's files, asked for as Rust takes it. */
export function filesOf(ask: Ask): WorkspaceFiles {
  const request = (act: string, userId: unknown, path: unknown, text?: unknown): string => {
    if (userId !== null) checkId("userId", userId);
    checkText("PATH_INVALID", "the path", path);
    if (act === "write") checkText("INPUT_INVALID", "the text", text);
    return JSON.stringify({ act, userId, path, text });
  };
  return Object.freeze<WorkspaceFiles>({
    read: async (userId, path) => ask(request("read", userId, path)),
    write: async (userId, path, text) => {
      await ask(request("write", userId, path, text));
    },
    list: async (userId, path = "") => ask(request("list", userId, path)),
    delete: async (userId, path) => {
      await ask(request("delete", userId, path));
    },
  });
}

function checkText(code: "PATH_INVALID" | "INPUT_INVALID", what: string, text: unknown): void {
  if (typeof text !== "string") throw new LockgateError(code, `${what} is not text`, { hint: "give a string" });
  if (/\p{Surrogate}/u.test(text)) throw new LockgateError(code, `${what} has half a character`, { hint: "give well-formed text" });
}
