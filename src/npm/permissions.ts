// Permissions as users write them, and what a user's tool says of an input before it runs.

import type { CoreAgent, CoreTask } from "./core.js";
import { LockgateError } from "./errors.js";
import type { ToolKind } from "./kinds.js";
import type { PermissionContext, PermissionMode, PermissionOptions, Rule, ToolConfig, ToolContext } from "./types.js";

const MODES: readonly unknown[] = ["default", "accept_edits", "explore", "bypass", "dont_ask"] satisfies PermissionMode[];
const MEMBERS = ["mode", "allow", "ask", "deny", "workingDirectories"] satisfies (keyof PermissionOptions)[];
const LISTS = ["allow_rules", "ask_rules", "deny_rules", "working_directories"] satisfies (keyof PermissionContext)[];

/** The options as a session keeps them, or OPTIONS. */
export function permissionContext(options: PermissionOptions): PermissionContext {
  for (const name of Object.keys(options)) {
    if (!(MEMBERS as string[]).includes(name)) throw wrong(`there is no member of permissions ${JSON.stringify(name)}`, `the members are ${MEMBERS.join(", ")}`);
  }
  const { mode = "default", workingDirectories = [] } = options;
  if (!MODES.includes(mode)) throw wrong("permissions.mode is not a mode", `the modes are ${MODES.join(", ")}`);
  const areTexts = Array.isArray(workingDirectories) && workingDirectories.every((each) => typeof each === "string");
  if (!areTexts) throw wrong("permissions.workingDirectories is not a list of folders", 'workingDirectories: ["notes"]');
  const rules = (behavior: Rule["behavior"]): Rule[] => {
    const list: unknown = options[behavior] ?? [];
    if (!Array.isArray(list)) throw wrong(`permissions.${behavior} is not a list`, `${behavior}: ["tool", "tool(content)"]`);
    return list.map((each: unknown) => ruleOf(behavior, each));
  };
  return { mode, allow_rules: rules("allow"), ask_rules: rules("ask"), deny_rules: rules("deny"), working_directories: workingDirectories };
}

/** A rule, short or whole. A whole one that says something else than its list is a mistake that could allow too much. */
function ruleOf(behavior: Rule["behavior"], rule: unknown): Rule {
  if (typeof rule === "string") {
    const [, tool_name, content] = /^([A-Za-z0-9_-]{1,64})(?:\((.*)\))?$/s.exec(rule) ?? [];
    if (tool_name !== undefined) return { tool_name, rule_content: content || null, behavior, source: "options" };
  } else if (typeof rule === "object" && rule !== null) {
    const { tool_name, rule_content = null, behavior: says, source = "options" } = rule as Partial<Rule>;
    const isRule = typeof tool_name === "string" && (rule_content === null || typeof rule_content === "string") && says === behavior;
    if (isRule && typeof source === "string") return { tool_name, rule_content, behavior, source };
  }
  throw wrong(`permissions.${behavior} holds something that is no such rule`, `write "tool", "tool(content)" or { tool_name, rule_content, behavior: "${behavior}", source }`);
}

/** A mode, or INPUT_INVALID. */
export function checkMode(mode: unknown): PermissionMode {
  if (MODES.includes(mode)) return mode as PermissionMode;
  throw new LockgateError("INPUT_INVALID", "there is no such mode", { hint: `the modes are ${MODES.join(", ")}` });
}

/** What a session's tools may do, whole; Rust looks at the rules. */
export function checkContext(context: unknown): PermissionContext {
  const given = (typeof context === "object" && context !== null ? context : {}) as PermissionContext;
  checkMode(given.mode);
  if (LISTS.every((name) => Array.isArray(given[name]))) return given;
  throw new LockgateError("INPUT_INVALID", "the permissions are not whole", { hint: `give mode, ${LISTS.join(", ")}` });
}

export const changePermissions = (core: CoreAgent, request: string): CoreTask => core.changePermissions(request);

/** What a tool has to say about permissions, or OPTIONS. */
export function checkedRights(config: ToolConfig<any>): Pick<ToolKind, "needsApproval" | "permission" | "matches"> {
  const { name, needsApproval = false, permission, matches, readOnly } = config;
  const isMaybe = (value: unknown, kind: string): boolean => value === undefined || typeof value === kind;
  const fits = isMaybe(permission, "function") && isMaybe(matches, "function") && isMaybe(readOnly, "boolean");
  if (!fits || !["boolean", "function"].includes(typeof needsApproval)) {
    throw wrong(`needsApproval, permission, matches or readOnly of tool "${name}" cannot be`, "permission and matches are functions, readOnly is true or false, needsApproval either");
  }
  return {
    needsApproval: typeof needsApproval === "function" ? needsApproval.bind(config) : needsApproval,
    permission: permission?.bind(config),
    matches: matches?.bind(config),
  };
}

/** Whether a tool has anything to say of an input. */
export function hasOpinion({ needsApproval, permission, matches }: ToolKind): boolean {
  return needsApproval !== false || permission !== undefined || matches !== undefined;
}

/** What a tool says of an input, and which contents of rules fit it. Whatever is no clear answer is thrown, and denies the call. */
export async function opinionOf(tool: ToolKind, input: unknown, context: ToolContext, rules: readonly string[]): Promise<string> {
  const fits = tool.matches && rules.map((rule) => clear(tool.matches!(rule, input), [true, false], "matches"));
  const says = tool.permission === undefined ? "pass" : clear(await tool.permission(input, context), ["allow", "ask", "deny", "pass"], "permission");
  const { needsApproval } = tool;
  const needs = typeof needsApproval === "function" ? clear(await needsApproval(input, context), [true, false], "needsApproval") : needsApproval;
  // The stricter of the two.
  return JSON.stringify({ own: needs && says !== "deny" ? "ask" : says, fits });
}

function clear<T>(answer: unknown, known: readonly T[], what: string): T {
  if (known.includes(answer as T)) return answer as T;
  throw new TypeError(`${what} answered with none of ${known.join(", ")}`);
}

function wrong(message: string, hint: string): LockgateError {
  return new LockgateError("OPTIONS", message, { hint });
}
