// A Durable Object that hosts the agent of one user, or of one session of an anonymous visitor.

import { LockgateError } from "../errors.js";
import { durableObjectStore } from "../stores/cloudflare.js";
import type { DurableStorage } from "../stores/cloudflare.js";
import type { Agent, AgentOptions } from "../types.js";
import { budget } from "./budget.js";
import { checkId } from "../values/arguments.js";
import { decoded } from "./handle.js";
import { MAX_HELD_BYTES } from "./held.js";
import { answerOf } from "./outlet.js";
import { JSON_HEADERS, refused } from "./reply.js";
import { checkRight, rightsOf } from "./rights.js";
import { follows, routeOf } from "./routes.js";
import type { Asked } from "./routes.js";
import { senderOf } from "./sender.js";
import type { Sender } from "./sender.js";
import { Turns } from "./turns.js";
import type { ObjectStorage } from "./turns.js";

/** The platform ends an alarm after 15 minutes. */
const ALARM_MS = 10 * 60_000;

/** After this delay an alarm continues unfinished work, if no request comes before. */
const LATER_MS = 20_000;

/** The most sessions that are remembered as checked for cut-off turns. Above it, all are forgotten and checked again. */
const MOST_ENTERED = 1_000;

/** The longest id, in bytes. The engine refuses longer ones too, but they would be remembered here before. */
const MOST_ID_BYTES = 256;

/** Small, because objects share the 128 MB of an isolate. A session that is not in the cache is read again. */
const CACHE = { sessions: 50, bytes: 4 * 1024 * 1024 };

const OWNER = "lockgate:owner";

interface Owner {
  readonly userId: string | null;
  readonly session: string | null;
}

/** Everything of AgentObject except how an agent is created, which differs by host. */
export abstract class AgentHost<Env = unknown> {
  /** The environment of the worker: its bindings and secrets. */
  protected readonly env: Env;
  /** The most outgoing requests of a turn, if the platform has a limit. Model requests count, and each tool call counts as one. A turn that needs more is saved and ended early. */
  protected readonly maxSubrequests: number | undefined = undefined;
  readonly #storage: ObjectStorage & DurableStorage;
  readonly #turns: Turns;
  readonly #entered = new Map<string, Promise<void>>();
  #owner: Promise<Owner | undefined> | undefined;
  #agent: Promise<Agent> | undefined;
  #isSettled = false;
  #wakesAt = 0;

  // `any`, because the types of the platform are not part of this package.
  constructor(state: any, env: Env) {
    this.env = env;
    this.#storage = (state as { storage: ObjectStorage & DurableStorage }).storage;
    this.#turns = new Turns(this.#storage);
  }

  /** The options of the agent. Its store is the storage of the object. */
  abstract options(env: Env): Omit<AgentOptions, "store"> | Promise<Omit<AgentOptions, "store">>;

  /** Creates an agent on this host. */
  protected abstract create(options: AgentOptions): Promise<Agent>;

  /** The agent of this object, created on first use. */
  protected get agent(): Promise<Agent> {
    this.#agent ??= this.#open().catch((error: unknown) => {
      this.#agent = undefined;
      throw error;
    });
    return this.#agent;
  }

  /** How many bytes the object holds for its clients now, at most `maxHeldBytes`: for your own metrics. */
  protected get heldBytes(): number {
    return this.#turns.held.bytes;
  }

  /** Answers a request from `handle`. */
  async fetch(request: Request): Promise<Response> {
    try {
      return await this.#answer(request);
    } catch (error) {
      return refused(error);
    }
  }

  /** Finishes the work after replies, and closes turns that a restart cut off. */
  async alarm(): Promise<void> {
    this.#wakesAt = 0;
    if ((await this.#known()) === undefined) return;
    const agent = await this.agent;
    const sessions = new Set((await this.#turns.cutOff()).map(({ sessionId }) => sessionId));
    for (const sessionId of sessions) await this.#close(agent, sessionId);
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([agent.drain(), new Promise((resolve) => (timer = setTimeout(resolve, ALARM_MS)))]);
    clearTimeout(timer);
    if (this.#turns.running > 0) this.#wakeLater();
  }

  async #open(): Promise<Agent> {
    const options = await this.options(this.env);
    const { maxSubrequests } = this;
    const middleware = [...(options.middleware ?? []), ...(maxSubrequests === undefined ? [] : [budget(maxSubrequests)])];
    const owner = await this.#known();
    const anonymous = owner?.session ?? undefined;
    const agent = await this.create({
      // The object of an anonymous visitor has one session, which owns everything.
      requireUserId: anonymous === undefined,
      cache: CACHE,
      ...options,
      ...(anonymous === undefined ? {} : { defaultSessionId: anonymous }),
      middleware,
      store: durableObjectStore(this.#storage),
    });
    agent.subscribe("everyone", (event) => this.#turns.hear(event));
    return agent;
  }

  async #answer(request: Request): Promise<Response> {
    const sender = senderOf(request);
    const url = new URL(request.url);
    const path = url.pathname.slice(1).split("/").map(decoded);
    const route = routeOf(request.method, path);
    if (route instanceof Response) return route;
    const rights = rightsOf(sender.caller.rights);
    checkRight(route.name, rights);
    await this.#admit(sender);
    this.#turns.held.max = sender.maxHeldBytes ?? MAX_HELD_BYTES;
    // A request that only reads stores nothing.
    if (request.method !== "GET") await this.#settle(sender);
    const text = isQuery(request) ? "" : await request.text();
    const finished = this.#turns.held.admit(text.length);
    let ended: Promise<unknown> | undefined;
    try {
      const args = isQuery(request) ? Object.fromEntries(url.searchParams) : argsOf(text);
      const slot = { userId: sender.caller.userId, sessionId: sessionOf(route, sender, args) };
      const agent = await this.agent;
      if (slot.sessionId !== "") await this.#enter(agent, slot.sessionId);
      if (request.method !== "GET") this.#wakeLater();
      return await follows(route.name, agent, this.#asked(request, url, { sender, slot, args, rights, begun: (end) => (ended = end) }));
    } finally {
      if (ended === undefined) finished();
      else ended.then(finished, finished);
    }
  }

  #asked(request: Request, url: URL, given: { readonly sender: Sender } & Pick<Asked, "slot" | "args" | "rights" | "begun">): Asked {
    const { sender, slot, args, rights, begun } = given;
    return {
      slot,
      args,
      rights,
      attributes: sender.caller.attributes ?? {},
      accept: request.headers.get("accept") ?? "",
      lastEventId: request.headers.get("last-event-id"),
      onDisconnect: url.searchParams.get("onDisconnect"),
      basePath: sender.basePath,
      turns: this.#turns,
      begun,
      answer: (value) => answerOf(this.#turns.held, JSON.stringify(value ?? null), { sessionId: slot.sessionId, headers: JSON_HEADERS }),
      wipe: () => this.#turns.whileDeleting(undefined, () => this.#wipe(slot.userId)),
    };
  }

  /** The first caller owns the object. Another caller was sent here by mistake, and is refused. */
  async #admit({ caller: { userId }, session }: Sender): Promise<void> {
    // Read again after a wait: another caller may have become the owner in the meantime.
    const owner = (await this.#known()) ?? (await this.#known());
    if (owner === undefined) {
      this.#owner = Promise.resolve({ userId, session });
      // An agent that was created before did not know the owner.
      this.#agent = undefined;
    } else if (owner.userId !== userId || owner.session !== session) {
      throw new LockgateError("ID_INVALID", "this object belongs to another caller", { hint: "let handle choose the object" });
    }
  }

  /** Stores the owner, once. */
  async #settle({ caller: { userId }, session }: Sender): Promise<void> {
    if (this.#isSettled) return;
    await this.#storage.put(OWNER, { userId, session });
    this.#isSettled = true;
  }

  #known(): Promise<Owner | undefined> {
    this.#owner ??= (this.#storage.get(OWNER) as Promise<Owner | undefined>).then((owner) => {
      this.#isSettled = owner !== undefined;
      return owner;
    });
    return this.#owner;
  }

  /** Closes turns of this session that a restart cut off, before a client sees them unfinished. */
  #enter(agent: Agent, sessionId: string): Promise<void> {
    if (this.#entered.size > MOST_ENTERED) this.#entered.clear();
    const entered = this.#entered.get(sessionId) ?? this.#close(agent, sessionId);
    this.#entered.set(sessionId, entered);
    entered.catch(() => this.#entered.delete(sessionId));
    return entered;
  }

  async #close(agent: Agent, sessionId: string): Promise<void> {
    const cut = (await this.#turns.cutOff(sessionId)).filter(({ interrupted }) => interrupted !== true);
    if (cut.length === 0) return;
    const slot = { userId: (await this.#known())?.userId ?? null, sessionId };
    const isChanged = await closed(agent, slot);
    // Only the first call can have been accepted. The others were waiting, and clients may send them again.
    const [first, ...others] = [...cut].sort((one, other) => one.at - other.at);
    await this.#turns.forget(isChanged ? others : cut);
    if (isChanged) await this.#turns.closed(first!);
  }

  async #wipe(userId: string | null): Promise<void> {
    const agent = await this.agent;
    await agent.deleteUser(userId);
    await agent.close();
    await this.#storage.deleteAlarm();
    await this.#storage.deleteAll();
    this.#owner = this.#agent = undefined;
    this.#isSettled = false;
    this.#entered.clear();
    this.#wakesAt = 0;
  }

  #wakeLater(): void {
    const now = Date.now();
    if (this.#wakesAt > now) return;
    this.#wakesAt = now + LATER_MS;
    void this.#storage.setAlarm(this.#wakesAt).catch(() => (this.#wakesAt = 0));
  }
}

/** Closes a turn that was cut off, and returns whether there was one. Every change of a session does this, so the title is set to the title that it already has. */
async function closed(agent: Agent, slot: Asked["slot"]): Promise<boolean> {
  const info = await agent.session(slot);
  if (info === null) return false;
  const last = async (): Promise<string | undefined> => (await agent.history(slot, { limit: 1 })).at(-1)?.id;
  const before = await last();
  await agent.renameSession(slot, info.title);
  return (await last()) !== before;
}

/** Whether the members of a request are in its query. */
function isQuery({ method }: Request): boolean {
  return method === "GET" || method === "DELETE";
}

/** The members of the JSON body. */
function argsOf(text: string): Record<string, unknown> {
  if (text === "") return {};
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    throw new LockgateError("INPUT_INVALID", "the body is not JSON", { hint: "send a JSON object", cause });
  }
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw new LockgateError("INPUT_INVALID", "the body is not an object", { hint: 'send a JSON object, such as { "input": "hello" }' });
}

/** The session of a request; "" if its route has none. */
function sessionOf(route: Exclude<ReturnType<typeof routeOf>, Response>, sender: Sender, args: Asked["args"]): string {
  const given = route.sessionId ?? sender.session ?? (route.name === "chat" ? args["id"] : undefined);
  if (given === undefined) return "";
  checkId("sessionId", given);
  if (new TextEncoder().encode(given).length <= MOST_ID_BYTES) return given;
  throw new LockgateError("ID_INVALID", `sessionId has more than ${MOST_ID_BYTES} bytes`, { hint: "use a shorter id" });
}
