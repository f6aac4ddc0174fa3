// `agent.files`: the workspace files of users, for the host program.

import { LockgateError } from "../errors.js";
import { checkId } from "../values/arguments.js";
import type { WorkspaceFiles } from "../types.js";

type AskFiles = <T>(request: string) => Promise<T>;

/** Makes `agent.files`. Each method sends a request to Rust. */
export function filesOf(ask: AskFiles): WorkspaceFiles {
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
  if (typeof text !== "string") throw new LockgateError(code, `${what} is not text`, { hint: "pass a string" });
  if (/\p{Surrogate}/u.test(text)) throw new LockgateError(code, `${what} has half a character`, { hint: "pass well-formed text" });
}
