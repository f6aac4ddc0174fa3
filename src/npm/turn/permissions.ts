// Checks permissions in options and arguments, and asks a tool whether an input is allowed.

import { LockgateError } from "../errors.js";
import type { ToolInternals } from "../values/internals.js";
import type { PermissionContext, PermissionMode, PermissionOptions, Rule, ToolConfig, ToolContext } from "../types.js";

const MODES: readonly unknown[] = ["default", "accept_edits", "explore", "bypass", "dont_ask"] satisfies PermissionMode[];
const MEMBERS = ["mode", "allow", "ask", "deny", "workingDirectories"] satisfies (keyof PermissionOptions)[];
const LISTS = ["allow_rules", "ask_rules", "deny_rules", "working_directories"] satisfies (keyof PermissionContext)[];

/** The option `permissions` in the form that a session stores. Throws OPTIONS. */
export function permissionContext(options: PermissionOptions): PermissionContext {
  for (const name of Object.keys(options)) {
    if (!(MEMBERS as string[]).includes(name)) throw wrong(`permissions has no member ${JSON.stringify(name)}`, `the members are ${MEMBERS.join(", ")}`);
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

/** A rule in short or full form. A full rule must have the behaviour of its list: a difference is a mistake that could allow too much. */
function ruleOf(behavior: Rule["behavior"], rule: unknown): Rule {
  if (typeof rule === "string") {
    const [, tool_name, content] = /^([A-Za-z0-9_-]{1,64})(?:\((.*)\))?$/s.exec(rule) ?? [];
    if (tool_name !== undefined) return { tool_name, rule_content: content || null, behavior, source: "options" };
  } else if (typeof rule === "object" && rule !== null) {
    const { tool_name, rule_content = null, behavior: ownBehavior, source = "options" } = rule as Partial<Rule>;
    const isRule = typeof tool_name === "string" && (rule_content === null || typeof rule_content === "string") && ownBehavior === behavior;
    if (isRule && typeof source === "string") return { tool_name, rule_content, behavior, source };
  }
  throw wrong(`permissions.${behavior} has an entry that is not a rule of this list`, `write "tool", "tool(content)" or { tool_name, rule_content, behavior: "${behavior}", source }`);
}

/** Checks a permission mode. Throws INPUT_INVALID. */
export function checkMode(mode: unknown): PermissionMode {
  if (MODES.includes(mode)) return mode as PermissionMode;
  throw new LockgateError("INPUT_INVALID", "this is not a permission mode", { hint: `the modes are ${MODES.join(", ")}` });
}

/** Checks the outer form of a permission context. Rust checks the rules. */
export function checkContext(context: unknown): PermissionContext {
  const given = (typeof context === "object" && context !== null ? context : {}) as PermissionContext;
  checkMode(given.mode);
  if (LISTS.every((name) => Array.isArray(given[name]))) return given;
  throw new LockgateError("INPUT_INVALID", "the permission context is not complete", { hint: `pass mode, ${LISTS.join(", ")}` });
}

/** The members of a tool that decide about permission, checked. Throws OPTIONS. */
export function checkToolPermission(config: ToolConfig<any>): Pick<ToolInternals, "needsApproval" | "permission" | "matches"> {
  const { name, needsApproval = false, permission, matches, readOnly } = config;
  const isMaybe = (value: unknown, kind: string): boolean => value === undefined || typeof value === kind;
  const fits = isMaybe(permission, "function") && isMaybe(matches, "function") && isMaybe(readOnly, "boolean");
  if (!fits || !["boolean", "function"].includes(typeof needsApproval)) {
    throw wrong(`needsApproval, permission, matches or readOnly of tool "${name}" has the wrong type`, "permission and matches are functions, readOnly is true or false, needsApproval is a function, true or false");
  }
  return {
    needsApproval: typeof needsApproval === "function" ? needsApproval.bind(config) : needsApproval,
    permission: permission?.bind(config),
    matches: matches?.bind(config),
  };
}

/** Whether a tool has functions or flags that decide about permission. */
export function checksPermission({ needsApproval, permission, matches }: ToolInternals): boolean {
  return needsApproval !== false || permission !== undefined || matches !== undefined;
}

/** Asks a tool whether an input is allowed, and which rule contents match it. An unexpected answer throws, which denies the tool call. */
export async function toolPermission(tool: ToolInternals, input: unknown, context: ToolContext, rules: readonly string[]): Promise<string> {
  const fits = tool.matches && rules.map((rule) => oneOf(tool.matches!(rule, input), [true, false], "matches"));
  const permission = tool.permission === undefined ? "pass" : oneOf(await tool.permission(input, context), ["allow", "ask", "deny", "pass"], "permission");
  const { needsApproval } = tool;
  const needs = typeof needsApproval === "function" ? oneOf(await needsApproval(input, context), [true, false], "needsApproval") : needsApproval;
  // The stricter of the two answers.
  return JSON.stringify({ own: needs && permission !== "deny" ? "ask" : permission, fits });
}

function oneOf<T>(answer: unknown, known: readonly T[], what: string): T {
  if (known.includes(answer as T)) return answer as T;
  throw new TypeError(`${what} answered with none of ${known.join(", ")}`);
}

function wrong(message: string, hint: string): LockgateError {
  return new LockgateError("OPTIONS", message, { hint });
}
