// Checks the options of `createAgent`: every error says what is wrong and what to write instead.

import { LockgateError } from "../errors.js";
import { modelInternals, storeInternals, toolInternals } from "../values/internals.js";
import type { ModelInternals, ToolInternals } from "../values/internals.js";
import { webLocks } from "../host/locks.js";
import { checksPermission, permissionContext } from "../turn/permissions.js";
import { checkSubagents } from "../subagent/options.js";
import { EXIT_SIGNALS } from "../values/exit-signals.js";
import type { ExitSignal } from "../values/exit-signals.js";
import type { ChildModels } from "../subagent/options.js";
import { describe } from "../values/arguments.js";
import type { AgentOptions, Middleware, Model, Store } from "../types.js";

/** The checked options of an agent: the plain data for Rust, and what stays in JavaScript. */
export interface CheckedOptions {
  /** The plain options as JSON text. */
  readonly plain: string;
  readonly name: string;
  readonly defaultSessionId: string | undefined;
  readonly model: ModelInternals;
  readonly fallbackModel: ModelInternals | undefined;
  /** The model that summarises, if it is not `model`. */
  readonly compactionModel: ModelInternals | undefined;
  /** The model that looks for facts to remember, if it is not `model`. */
  readonly memoryModel: ModelInternals | undefined;
  readonly tokenCounter: ((text: string) => number) | undefined;
  /** The models of subagents, by kind. */
  readonly children: ReadonlyMap<string, ChildModels>;
  readonly store: Store;
  readonly tools: readonly ToolInternals[];
  readonly middleware: readonly Middleware[];
  readonly crossTab: boolean;
  /** The signals before which running calls are saved. */
  readonly shutdownSignals: readonly ExitSignal[];
  readonly hasSubagents: boolean;
  /** The most bytes of conversations that are kept in memory. */
  readonly cacheBytes: number;
  /** The deadline of a hook, in ms. */
  readonly hookMs: number;
  /** Whether the agent made the store itself. Then it also closes it. */
  readonly ownStore: boolean;
}

/** Whether the first part of the wasm is enough for these options. Any other agent waits for the rest. */
export const isSimple = (options: AgentOptions): boolean => Object.keys(options).every((name) => SIMPLE.includes(name));

const SIMPLE = ["name", "description", "systemPrompt", "model", "tools", "store", "defaultSessionId", "requireUserId", "maxIterations", "shutdownSignals", "replicas"];

/** The kind of value that an option takes. "rate": a number or false. `names`: an object of numbers with these members. `members`: true, false, or an object with these members. */
type Kind = "text" | "flag" | "keepable" | "number" | "rate" | "list" | "object" | { readonly names: readonly string[] } | { readonly members: Readonly<Record<string, Kind>> };

const PLAIN = {
  name: "text",
  systemPrompt: "text",
  description: "text",
  defaultSessionId: "text",
  requireUserId: "flag",
  toolGroups: "list",
  metaTool: "flag",
  taskList: "flag",
  planMode: { members: { directory: "text", extraTools: "list" } },
  skills: "list",
  workspace: { members: { templates: "object", readOnly: "list", maxFileBytes: "number" } },
  memory: { members: { model: "object", maxInjectedTokens: "number", flush: "text" } },
  sessionTools: { members: { agents: "list" } },
  permissions: "object",
  persistence: { members: { conversation: "flag", tasks: "keepable", plan: "keepable", toolGroups: "keepable", skills: "keepable", permissions: "keepable" } },
  maxIterations: "number",
  maxToolCalls: "number",
  overlap: "text",
  onConflict: "text",
  durability: "text",
  checkpointMs: "rate",
  queueLimit: "number",
  cache: { names: ["sessions", "bytes"] },
  timeouts: { names: ["model", "tool", "hook", "store", "lock", "call"] },
  retries: { names: ["attempts", "initialMs", "maxMs"] },
  generate: "object",
  compaction: {
    members: {
      triggerMessages: "number", triggerTokens: "number", reserve: "number", keepMessages: "number", keepTokens: "number",
      prompt: "text", model: "object", flushBeforeCompact: "flag", offloadBeforeCompact: "flag",
      truncateArgs: { members: { maxArgLength: "number", truncationText: "text" } },
    },
  },
  toolResultEviction: { members: { maxChars: "number", previewChars: "number", exclude: "list" } },
} as const satisfies Partial<Record<keyof AgentOptions, Kind>>;
const PORTS = ["model", "fallbackModel", "subagents", "tokenCounter", "tools", "middleware", "store", "crossTab", "shutdownSignals", "replicas"] as const satisfies readonly (keyof AgentOptions)[];
type UnlistedOption = Exclude<keyof AgentOptions, keyof typeof PLAIN | (typeof PORTS)[number]>;
const everyOptionIsListed: [UnlistedOption] extends [never] ? true : never = true;
const KNOWN: readonly string[] = everyOptionIsListed ? [...Object.keys(PLAIN), ...PORTS] : [];

/** Checks the options of `createAgent`. Throws OPTIONS. */
export function checkOptions(options: AgentOptions, defaultStore: () => Store): CheckedOptions {
  if (typeof options !== "object" || options === null) throw wrong("createAgent takes an object of options", "createAgent({ name, model })");
  checkNames("option", options, KNOWN);
  if (options.name === undefined) throw wrong("name is missing", 'give the agent a name: createAgent({ name: "helper", … })');
  for (const [name, kind] of Object.entries(PLAIN)) checkKind(name, options[name as keyof typeof PLAIN], kind);
  checkKind("crossTab", options.crossTab, "flag");
  checkKind("replicas", options.replicas, "flag");
  for (const name of ["name", "defaultSessionId"] as const) {
    const text = options[name];
    if (text === "" || (text !== undefined && /\p{Surrogate}/u.test(text))) throw wrong(`${name} is empty or has half a character`, `give ${name} some well-formed text`);
  }
  const model = checkModel("model", options.model);
  const fallbackModel = options.fallbackModel === undefined ? undefined : checkModel("fallbackModel", options.fallbackModel);
  const { model: compactionModel, plain: compaction } = checkCompaction(options.compaction);
  const { model: memoryModel, plain: memory } = withoutModel("memory", options.memory);
  const { plain: subagents, children } = checkSubagents(options.subagents, { wrong, names: checkNames, model: checkModel, compaction: checkCompaction });
  const { tokenCounter } = options;
  if (tokenCounter !== undefined && typeof tokenCounter !== "function") throw wrong(`tokenCounter is ${describe(tokenCounter)}`, "tokenCounter: (text) => text.length / 4");
  const tools = checkTools(options.tools);
  const middleware = checkMiddleware(options.middleware);
  const store = checkStore(options.store === undefined ? defaultStore() : options.store);
  if (options.replicas === true) checkShared(store);
  const crossTab = options.crossTab ?? true;
  const own = storeInternals(store)?.own;
  if (own !== undefined && "localStorage" in own && crossTab && webLocks() === undefined) {
    throw wrong(
      "without Web Locks, tabs that use localStorage would overwrite each other",
      "use indexedDbStore(), serve the page over https, or set crossTab: false if there is never a second tab",
    );
  }
  const shutdownSignals = checkSignals(options.shutdownSignals);
  const plain: Record<string, unknown> = {};
  for (const name of Object.keys(PLAIN) as (keyof typeof PLAIN)[]) {
    if (options[name] !== undefined) plain[name] = options[name];
  }
  if (compaction !== undefined) plain["compaction"] = compaction;
  plain["subagents"] = subagents;
  if (memory !== undefined) plain["memory"] = memory;
  // Without Web Locks, tabs of one origin use leases in the store.
  plain["leases"] = options.crossTab !== false && store.capabilities.shared === "origin" && webLocks() === undefined;
  plain["store"] = { capabilities: store.capabilities, ...own };
  if (options.permissions !== undefined) plain["permissions"] = permissionContext(options.permissions);
  plain["tools"] = tools.map((each) => {
    const { name, description, inputSchema, parallel, timeoutMs, presets, execute, readOnly } = each;
    return { name, description, inputSchema, parallel, timeoutMs, presets, readOnly, external: execute === undefined, checks: checksPermission(each) };
  });
  return { plain: json(plain), name: options.name, defaultSessionId: options.defaultSessionId, model, fallbackModel, compactionModel, memoryModel, tokenCounter, children, store, tools, middleware, crossTab, shutdownSignals, hasSubagents: (options.subagents?.length ?? 0) > 0, cacheBytes: options.cache?.bytes ?? 64 << 20, hookMs: options.timeouts?.hook ?? 30_000, ownStore: options.store === undefined };
}

function checkModel(name: string, model: unknown): ModelInternals {
  const kind = modelInternals(model);
  if (kind !== undefined) return kind;
  throw wrong(`${name} is ${model === undefined ? "missing" : "not a model"}`, "use openai({ … }), anthropic({ … }) or gemini({ … }); demoModel() to begin with; customModel({ … }) for your own");
}

/** Splits an option that may contain a model: the model, and the plain data. */
function withoutModel(name: string, option: boolean | { readonly model?: Model } | undefined): { model: ModelInternals | undefined; plain?: object } {
  if (typeof option !== "object") return { model: undefined };
  const { model, ...plain } = option;
  return { model: model === undefined ? undefined : checkModel(`${name}.model`, model), plain };
}

function checkCompaction(compaction: AgentOptions["compaction"]): ReturnType<typeof withoutModel> {
  if (typeof compaction === "object" && compaction.prompt !== undefined && !compaction.prompt.includes("{messages}")) {
    throw wrong("compaction.prompt has no {messages}", "write {messages} where the conversation belongs");
  }
  return withoutModel("compaction", compaction);
}

function checkTools(tools: unknown): readonly ToolInternals[] {
  if (tools === undefined) return [];
  if (!Array.isArray(tools)) throw wrong("tools is not a list", "tools: [tool({ … })]");
  return tools.map((each, index) => {
    const kind = toolInternals(each);
    if (kind === undefined) throw wrong(`tools[${index}] is not a tool`, "make it with tool({ name, description, inputSchema, execute })");
    return kind;
  });
}

function checkMiddleware(middleware: unknown): readonly Middleware[] {
  if (middleware === undefined) return [];
  if (!Array.isArray(middleware)) throw wrong("middleware is not a list", "middleware: [{ name, beforeModel(request) { … } }]");
  middleware.forEach((each: unknown, index) => {
    if (typeof each !== "object" || each === null || typeof (each as Middleware).name !== "string") {
      throw wrong(`middleware[${index}] has no name`, "middleware: [{ name, beforeModel(request) { … } }]");
    }
    for (const point of HOOKS) checkHook(index, point, (each as Middleware)[point]);
    checkNames(`hook of middleware[${index}]:`, each, ["name", ...HOOKS]);
  });
  return middleware as Middleware[];
}

const HOOKS = ["onCall", "systemPrompt", "reviseContext", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"] as const;

function checkHook(index: number, point: string, hook: unknown): void {
  if (hook !== undefined && typeof hook !== "function") throw wrong(`middleware[${index}].${point} is ${describe(hook)}`, `${point} is a function`);
}

function checkSignals(given: unknown = true): readonly ExitSignal[] {
  if (typeof given === "boolean") return given ? ["SIGTERM", "SIGINT"] : [];
  if (!Array.isArray(given)) throw wrong(`shutdownSignals is ${describe(given)}`, "shutdownSignals takes true, false or a list of signals");
  const known = Object.keys(EXIT_SIGNALS);
  for (const name of given) {
    if (!known.includes(name)) throw wrong(`shutdownSignals has ${typeof name === "string" ? JSON.stringify(name) : describe(name)}`, `the signals are ${known.join(", ")}`);
  }
  return [...new Set(given as ExitSignal[])];
}

function checkStore(store: unknown): Store {
  const { get, list, commit, capabilities } = (store ?? {}) as Partial<Store>;
  const isStore = [get, list, commit].every((method) => typeof method === "function") && typeof capabilities === "object" && capabilities !== null;
  if (!isStore) throw wrong("store is not a store", "use memoryStore() or indexedDbStore(), or write get, list, commit and capabilities");
  return store as Store;
}

/** Refuses a store that other machines cannot use. */
function checkShared({ name, capabilities: { shared } }: Store): void {
  if (shared === "cluster") return;
  throw wrong(
    `replicas is true, but other machines cannot use the store ${JSON.stringify(String(name))}`,
    'use redisStore of lockgate/stores/redis, sqlStore of lockgate/stores/sql, or a store of your own with shared: "cluster"',
  );
}

function json(plain: Record<string, unknown>): string {
  try {
    return JSON.stringify(plain);
  } catch (cause) {
    throw wrong("the options are not plain data", "leave out BigInts, cycles and deep nesting", cause);
  }
}

/** Refuses unknown names, and hints at the known name that was probably meant. */
function checkNames(what: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw wrong(`there is no ${what} ${JSON.stringify(name)}`, nearest(name, known));
  }
}

function checkKind(name: string, value: unknown, kind: Kind): void {
  if (value === undefined) return;
  const fits = {
    text: () => typeof value === "string",
    flag: () => typeof value === "boolean",
    keepable: () => typeof value === "boolean" || value === "keep",
    number: () => Number.isFinite(value),
    rate: () => value === false || Number.isFinite(value),
    list: () => Array.isArray(value),
    object: () => typeof value === "object" && value !== null && !Array.isArray(value),
  };
  if (typeof kind === "object" && "members" in kind) {
    if (typeof value === "boolean") return;
    if (!fits.object()) throw wrong(`${name} is ${describe(value)}`, `${name} takes true, false or an object`);
    checkNames(`member of ${name}`, value as object, Object.keys(kind.members));
    for (const [member, each] of Object.entries(value as object)) checkKind(`${name}.${member}`, each, kind.members[member]!);
    return;
  }
  const expected = typeof kind === "string" ? kind : "object";
  if (!fits[expected]()) throw wrong(`${name} is ${describe(value)}`, `${name} takes ${WORDS[expected]}`);
  if (typeof kind === "string") return;
  checkNames(`member of ${name}`, value as object, kind.names);
  for (const [member, number] of Object.entries(value as object)) checkKind(`${name}.${member}`, number, "number");
}

const WORDS = { text: "text", flag: "true or false", keepable: 'true, false or "keep"', number: "a number", rate: "a number or false", list: "a list", object: "an object" };

function wrong(message: string, hint: string, cause?: unknown): LockgateError {
  return new LockgateError("OPTIONS", message, { hint, ...(cause === undefined ? {} : { cause }) });
}

/** A hint with the known name that differs least, or with all names if none is similar. */
function nearest(name: string, known: readonly string[]): string {
  const ranked = known.map((each) => [distance(name.toLowerCase(), each.toLowerCase()), each] as const);
  const [best] = ranked.sort(([one], [other]) => one - other);
  return best !== undefined && best[0] <= 3 ? `did you mean ${best[1]}?` : `the options are ${known.join(", ")}`;
}

function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const change = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
