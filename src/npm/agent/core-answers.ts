// The type of the answer of each wasm export that answers once, with JSON.

import type { CoreAgent } from "../core.js";
import type { Answers, MethodName } from "../protocol/methods.js";
import type { UserInfo } from "../types.js";

/** An export with the name of a method has the same answer as the method. */
export interface CoreAnswers extends Pick<Answers, Exclude<MethodName & keyof CoreAgent, "interrupt">> {
  // Exports with another name than their method, and exports that no method of the table uses.
  state: Answers["getAgentState"];
  putState: Answers["putAgentState"];
  changePermissions: Answers["setPermissionMode" | "replacePermissions"];
  files: Answers["listFiles" | "readFile" | "writeFile" | "deleteFile"];
  interruptElsewhere: Answers["interrupt"];
  listUsers: UserInfo[];
}
