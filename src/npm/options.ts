// What users hand over, checked: every refusal says what was wrong and what to write instead.

import { LockgateError } from "./errors.js";
import { modelKind, storeKind, toolKind } from "./kinds.js";
import type { ModelKind, ToolKind } from "./kinds.js";
import { webLocks } from "./locks.js";
import { hasOpinion, permissionContext } from "./permissions.js";
import { jsonSchema } from "./schema.js";
import { checkSubagents } from "./subagents.js";
import type { ChildModels } from "./subagents.js";
import type { AgentOptions, CallOptions, Input, Middleware, Model, Slot, Store } from "./types.js";

/** The options of an agent, apart: what is plain, and what is not. */
export interface Checked {
  /** The plain options as JSON text. */
  readonly plain: string;
  readonly name: string;
  readonly defaultSessionId: string | undefined;
  readonly model: ModelKind;
  readonly fallbackModel: ModelKind | undefined;
  /** Who summarises, if not the model. */
  readonly compactionModel: ModelKind | undefined;
  /** Who looks for facts to be remembered, if not the model. */
  readonly memoryModel: ModelKind | undefined;
  readonly tokenCounter: ((text: string) => number) | undefined;
  /** The models of children, by their kind. */
  readonly children: ReadonlyMap<string, ChildModels>;
  readonly store: Store;
  readonly tools: readonly ToolKind[];
  readonly middleware: readonly Middleware[];
  readonly crossTab: boolean;
  /** How much of conversations is kept in memory. */
  readonly cacheBytes: number;
  /** Whether we made the store ourselves, and so close it. */
  readonly ownStore: boolean;
}

/** Whether an agent works with what a page starts with; for any other the rest of the wasm is waited for. */
export const isSimple = (options: AgentOptions): boolean => Object.keys(options).every((name) => SIMPLE.includes(name));

const SIMPLE = ["name", "description", "systemPrompt", "model", "tools", "store", "defaultSessionId", "requireUserId", "maxIterations"];

/** What kind of value an option takes; `names` are the members of an object of numbers, `members` those of an object that true stands for. */
type Kind = "text" | "flag" | "number" | "list" | "object" | { readonly names: readonly string[] } | { readonly members: Readonly<Record<string, Kind>> };

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
  memory: { members: { model: "object", maxInjectedTokens: "number" } },
  sessionTools: "flag",
  permissions: "object",
  persistence: { members: { conversation: "flag", tasks: "flag", plan: "flag", toolGroups: "flag", skills: "flag", permissions: "flag" } },
  maxIterations: "number",
  overlap: "text",
  onConflict: "text",
  durability: "text",
  queueLimit: "number",
  cache: { names: ["sessions", "bytes"] },
  timeouts: { names: ["model", "tool", "store", "lock", "call"] },
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
const PORTS = ["model", "fallbackModel", "subagents", "tokenCounter", "tools", "middleware", "store", "crossTab"] as const satisfies readonly (keyof AgentOptions)[];
type Unlisted = Exclude<keyof AgentOptions, keyof typeof PLAIN | (typeof PORTS)[number]>;
const everyOptionIsListed: [Unlisted] extends [never] ? true : never = true;
const KNOWN: readonly string[] = everyOptionIsListed ? [...Object.keys(PLAIN), ...PORTS] : [];

/** The options of `createAgent`, or OPTIONS. */
export function checkOptions(options: AgentOptions, defaultStore: () => Store): Checked {
  if (typeof options !== "object" || options === null) throw wrong("createAgent takes an object of options", "createAgent({ name, model })");
  checkNames("option", options, KNOWN);
  if (options.name === undefined) throw wrong("name is missing", 'give the agent a name: createAgent({ name: "helper", … })');
  for (const [name, kind] of Object.entries(PLAIN)) checkKind(name, options[name as keyof typeof PLAIN], kind);
  checkKind("crossTab", options.crossTab, "flag");
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
  const crossTab = options.crossTab ?? true;
  const own = storeKind(store)?.own;
  if (own !== undefined && "localStorage" in own && crossTab && webLocks() === undefined) {
    throw wrong(
      "localStorage has no way to keep tabs apart where Web Locks are missing: they would overwrite each other",
      "use indexedDbStore(), serve the page over https, or say crossTab: false if there is never a second tab",
    );
  }
  const plain: Record<string, unknown> = {};
  for (const name of Object.keys(PLAIN) as (keyof typeof PLAIN)[]) {
    if (options[name] !== undefined) plain[name] = options[name];
  }
  if (compaction !== undefined) plain["compaction"] = compaction;
  plain["subagents"] = subagents;
  if (memory !== undefined) plain["memory"] = memory;
  // Without Web Locks the tabs of an origin see in the store itself who has a session open.
  plain["leases"] = options.crossTab !== false && store.capabilities.shared === "origin" && webLocks() === undefined;
  plain["store"] = { capabilities: store.capabilities, ...own };
  if (options.permissions !== undefined) plain["permissions"] = permissionContext(options.permissions);
  plain["tools"] = tools.map((each) => {
    const { name, description, inputSchema, parallel, timeoutMs, presets, execute, readOnly } = each;
    return { name, description, inputSchema, parallel, timeoutMs, presets, readOnly, external: execute === undefined, checks: hasOpinion(each) };
  });
  return { plain: json(plain), name: options.name, defaultSessionId: options.defaultSessionId, model, fallbackModel, compactionModel, memoryModel, tokenCounter, children, store, tools, middleware, crossTab, cacheBytes: options.cache?.bytes ?? 64 << 20, ownStore: options.store === undefined };
}

function checkModel(name: string, model: unknown): ModelKind {
  const kind = modelKind(model);
  if (kind !== undefined) return kind;
  throw wrong(`${name} is ${model === undefined ? "missing" : "not a model"}`, "use openai({ … }), anthropic({ … }) or gemini({ … }); demoModel() to begin with; customModel({ … }) for your own");
}

/** An option that may hold a model of its own: the model, and what is plain in it. */
function withoutModel(name: string, option: boolean | { readonly model?: Model } | undefined): { model: ModelKind | undefined; plain?: object } {
  if (typeof option !== "object") return { model: undefined };
  const { model, ...plain } = option;
  return { model: model === undefined ? undefined : checkModel(`${name}.model`, model), plain };
}

function checkCompaction(compaction: AgentOptions["compaction"]): ReturnType<typeof withoutModel> {
  if (typeof compaction === "object" && compaction.prompt !== undefined && !compaction.prompt.includes("{messages}")) {
    throw wrong("compaction.prompt has no {messages}", "write {messages} where the conversation is to stand");
  }
  return withoutModel("compaction", compaction);
}

function checkTools(tools: unknown): readonly ToolKind[] {
  if (tools === undefined) return [];
  if (!Array.isArray(tools)) throw wrong("tools is not a list", "tools: [tool({ … })]");
  return tools.map((each, index) => {
    const kind = toolKind(each);
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

const HOOKS = ["onCall", "systemPrompt", "beforeModel", "afterModel", "beforeTool", "afterTool", "onEnd"] as const;

function checkHook(index: number, point: string, hook: unknown): void {
  if (hook !== undefined && typeof hook !== "function") throw wrong(`middleware[${index}].${point} is ${describe(hook)}`, `${point} is a function`);
}

function checkStore(store: unknown): Store {
  const { get, list, commit, capabilities } = (store ?? {}) as Partial<Store>;
  const isStore = [get, list, commit].every((method) => typeof method === "function") && typeof capabilities === "object" && capabilities !== null;
  if (!isStore) throw wrong("store is not a store", "use memoryStore() or indexedDbStore(), or write get, list, commit and capabilities");
  return store as Store;
}

/** A slot as Rust takes it, or ID_INVALID. */
export function checkSlot(slot: unknown): { userId: string | null; sessionId?: string } {
  if (slot === undefined) return { userId: null };
  if (typeof slot !== "object" || slot === null || Array.isArray(slot)) {
    throw badId("the session is not an object", "name it as { userId, sessionId }");
  }
  const { userId, sessionId } = slot as Slot;
  if ("userId" in slot && userId === undefined) {
    throw badId("userId is undefined", "say null for the anonymous user, or leave it out");
  }
  if (userId !== undefined && userId !== null) checkId("userId", userId);
  if (!("sessionId" in slot)) return { userId: userId ?? null };
  checkId("sessionId", sessionId);
  return { userId: userId ?? null, sessionId };
}

export function checkId(name: string, id: unknown): asserts id is string {
  if (typeof id !== "string") throw badId(`${name} is ${describe(id)}`, `${name} is a string`);
  if (/\p{Surrogate}/u.test(id)) throw badId(`${name} has half a character`, `${name} is well-formed text`);
}

/** Refuses what cannot be an input; the rest is for Rust to see. */
export function checkInput(input: Input): void {
  const hint = "say text, a message { content }, or a list of messages";
  if (typeof input !== "string" && (typeof input !== "object" || input === null)) {
    throw new LockgateError("INPUT_INVALID", `the input is ${describe(input)}`, { hint });
  }
}

/** Refuses what cannot be answers; the rest is for Rust to see. */
export function checkAnswers(answers: unknown): void {
  if (!Array.isArray(answers) || answers.length === 0) {
    const hint = "confirm(slot, [{ toolCallId, output }]), or { toolCallId, approve: true | false } for an approval";
    throw new LockgateError("INPUT_INVALID", "the answers are not a list with at least one answer", { hint });
  }
}

/** A request with one member, which is text. */
export function checkText(member: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(member)) {
    if (typeof value !== "string") throw badInput(`the ${name} is not text`, "give a string");
  }
  return member;
}

/** How long a shutdown may take, in milliseconds. */
export function checkTimeout(timeoutMs: number | undefined): number | undefined {
  if (timeoutMs === undefined || timeoutMs >= 0) return timeoutMs;
  throw badInput("timeoutMs is not a number of milliseconds", "leave it out to wait for the next boundary");
}

/** A page of a list; members that are undefined are left out. */
export function checkPage(page: Record<string, unknown>): Record<string, unknown> {
  if (typeof page !== "object" || page === null) {
    throw new LockgateError("INPUT_INVALID", "the page is not an object", { hint: "leave it out for the first page" });
  }
  const { limit } = page as { limit?: unknown };
  if (limit !== undefined && !(Number.isInteger(limit) && (limit as number) > 0)) {
    throw new LockgateError("INPUT_INVALID", "limit is not a whole number from 1 on", { hint: "leave it out for the default" });
  }
  return Object.fromEntries(Object.entries(page).filter(([, value]) => value !== undefined));
}

/** The options of a call besides its slot, as Rust takes them, and the model if it has one of its own. */
export function checkCall(context: (Slot & CallOptions) | undefined): { readonly plain: object; readonly model: ModelKind | undefined } {
  const { signal, callId, overlap, model, outputSchema, generate } = context ?? ({} as CallOptions);
  if (callId !== undefined) checkId("callId", callId);
  if (signal !== undefined && !(typeof signal === "object" && signal !== null && "aborted" in signal)) {
    throw badInput("signal is not an AbortSignal", "use new AbortController().signal");
  }
  const kind = modelKind(model);
  if (model !== undefined && kind === undefined) throw badInput("model is not a model", "use customModel({ … }) or another model of ours");
  if (generate !== undefined && (typeof generate !== "object" || generate === null)) throw badInput("generate is not an object", "generate: { temperature: 0 }");
  const schema = outputSchema === undefined ? undefined : jsonSchema(outputSchema, "the output");
  // A call with a model of its own cannot be part of another's turn.
  const joins = overlap === "steer" && kind !== undefined ? "queue" : overlap;
  return { plain: { callId, overlap: joins, generate, outputSchema: schema }, model: kind };
}

/** The number of the first event that somebody wants who has those up to `after`. */
export function checkAfter(after = -1): number {
  if (Number.isInteger(after) && after >= -1) return after + 1;
  throw badInput("after is not the number of an event", "give the seq of the last event you have");
}

/** The form in which a session is exported. */
export function checkFormat<T extends string>(format: T): T {
  if (["lockgate", "agentscope", "markdown"].includes(format)) return format;
  throw badInput("there is no such format", "use lockgate, agentscope or markdown");
}

/** A session that was exported. */
export function checkDocument(text: unknown): string {
  if (typeof text === "string") return text;
  throw badInput("the document is not text", "give what exportSession answered with");
}

function json(plain: Record<string, unknown>): string {
  try {
    return JSON.stringify(plain);
  } catch (cause) {
    throw wrong("the options are not plain data", "only model, tools and store may hold functions", cause);
  }
}

/** Refuses names that are not known, with the one that may have been meant. */
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
    number: () => Number.isFinite(value),
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

const WORDS = { text: "text", flag: "true or false", number: "a number", list: "a list", object: "an object" };

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function wrong(message: string, hint: string, cause?: unknown): LockgateError {
  return new LockgateError("OPTIONS", message, { hint, ...(cause === undefined ? {} : { cause }) });
}

function badInput(message: string, hint: string): LockgateError {
  return new LockgateError("INPUT_INVALID", message, { hint });
}

function badId(message: string, hint: string): LockgateError {
  return new LockgateError("ID_INVALID", message, { hint });
}

/** The known name that differs least, if one is near. */
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
