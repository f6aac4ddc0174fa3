// A Durable Object that hosts the agent of one user, or of one session of an anonymous visitor.

import { LockgateError } from "../errors.js";
import { durableObjectStore } from "../stores/cloudflare.js";
import type { DurableStorage } from "../stores/cloudflare.js";
import type { Agent, AgentOptions } from "../types.js";
import { budget } from "./budget.js";
import { decoded } from "./handle.js";
import { refused } from "./reply.js";
import { follows, routeOf } from "./routes.js";
import type { Asked } from "./routes.js";
import { senderOf } from "./sender.js";
import type { Sender } from "./sender.js";
import { Turns } from "./turns.js";
import type { ObjectStorage } from "./turns.js";

/** The platform ends an alarm after 15 minutes. */
const ALARM_MS = 10 * 60_000;

/** When the object looks after what it has begun, though nobody asks. */
const LATER_MS = 20_000;

/** So many sessions are remembered as looked after; then it is looked again. */
const MOST_ENTERED = 10_000;

/** An isolate has 128 MB, and objects share it: a session that is not here is read again. */
const CACHE = { sessions: 50, bytes: 4 * 1024 * 1024 };

const OWNER = "lockgate:owner";

interface Owner {
  readonly userId: string | null;
  readonly session: string | null;
}

/** Everything of AgentObject but the way in which an agent is made, which differs by host. */
export abstract class AgentHost<Env = unknown> {
  protected readonly env: Env;
  /** How many requests to the outside a turn may make, if the platform has a limit: counted are those to models, and one a tool call. A turn that needs more ends before, saved. */
  protected readonly maxSubrequests: number | undefined = undefined;
  readonly #storage: ObjectStorage & DurableStorage;
  readonly #turns: Turns;
  readonly #entered = new Map<string, Promise<void>>();
  #owner: Promise<Owner | undefined> | undefined;
  #agent: Promise<Agent> | undefined;
  #isSettled = false;
  #wakesAt = 0;

  // The contract leaves it open: the types of the platform come from elsewhere.
  constructor(state: any, env: Env) {
    this.env = env;
    this.#storage = (state as { storage: ObjectStorage & DurableStorage }).storage;
    this.#turns = new Turns(this.#storage);
  }

  /** How the agent is made. Its store is the object's storage. */
  abstract options(env: Env): Omit<AgentOptions, "store"> | Promise<Omit<AgentOptions, "store">>;

  /** Makes an agent where this runs. */
  protected abstract create(options: AgentOptions): Promise<Agent>;

  /** The agent of this object; made when it is first asked for. */
  protected get agent(): Promise<Agent> {
    this.#agent ??= this.#open().catch((error: unknown) => {
      this.#agent = undefined;
      throw error;
    });
    return this.#agent;
  }

  /** Answers what `handle` passes on. */
  async fetch(request: Request): Promise<Response> {
    try {
      return await this.#answer(request);
    } catch (error) {
      return refused(error);
    }
  }

  /** Does what is left to do after replies, and closes turns that a restart has cut off. */
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
    return this.create({
      // Of a visitor without a name there is one session here, and what is theirs is that session's.
      requireUserId: anonymous === undefined,
      cache: CACHE,
      ...options,
      ...(anonymous === undefined ? {} : { defaultSessionId: anonymous }),
      middleware,
      store: durableObjectStore(this.#storage),
    });
  }

  async #answer(request: Request): Promise<Response> {
    const sender = senderOf(request);
    const url = new URL(request.url);
    const path = url.pathname.slice(1).split("/").map(decoded);
    const route = routeOf(request.method, path);
    if (route instanceof Response) return route;
    await this.#admit(sender);
    // Whoever only looks leaves nothing behind.
    if (request.method !== "GET") await this.#settle(sender);
    const args = await argsOf(request, url);
    const sessionId = route.sessionId ?? sender.session ?? (route.name === "chat" ? String(args["id"] ?? "") : "");
    const agent = await this.agent;
    const slot = { userId: sender.caller.userId, sessionId };
    if (sessionId !== "") await this.#enter(agent, sessionId);
    if (request.method !== "GET") this.#wakeLater();
    return follows(route.name, agent, this.#asked(request, url, { sender, slot, args }));
  }

  #asked(request: Request, url: URL, { sender, slot, args }: { readonly sender: Sender; readonly slot: Asked["slot"]; readonly args: Asked["args"] }): Asked {
    return {
      slot,
      args,
      attributes: sender.caller.attributes ?? {},
      accept: request.headers.get("accept") ?? "",
      lastEventId: request.headers.get("last-event-id"),
      onDisconnect: url.searchParams.get("onDisconnect"),
      basePath: sender.basePath,
      turns: this.#turns,
      wipe: () => this.#wipe(slot.userId),
    };
  }

  /** An object belongs to whoever came first: everybody else has been sent here by mistake. */
  async #admit({ caller: { userId }, session }: Sender): Promise<void> {
    // Twice: of two who come at once, the first has it.
    const owner = (await this.#known()) ?? (await this.#known());
    if (owner === undefined) {
      this.#owner = Promise.resolve({ userId, session });
      // An agent that was made before this did not know whose it is.
      this.#agent = undefined;
    } else if (owner.userId !== userId || owner.session !== session) {
      throw new LockgateError("ID_INVALID", "this object belongs to somebody else", { hint: "let handle choose the object" });
    }
  }

  /** Keeps whose object this is, once. */
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

  /** Closes what a restart has cut off in this session, before anybody sees it half done. */
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
    // The one that came first had been accepted, if any; the others were waiting, and may be asked again.
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

/** Closes a turn that was cut off; whether there was one. Any change to a session does that, and this one changes nothing else. */
async function closed(agent: Agent, slot: Asked["slot"]): Promise<boolean> {
  const info = await agent.session(slot);
  if (info === null) return false;
  const last = async (): Promise<string | undefined> => (await agent.history(slot, { limit: 1 })).at(-1)?.id;
  const before = await last();
  await agent.renameSession(slot, info.title);
  return (await last()) !== before;
}

/** What a request says: the query, or the body. */
async function argsOf(request: Request, url: URL): Promise<Record<string, unknown>> {
  if (request.method === "GET" || request.method === "DELETE") return Object.fromEntries(url.searchParams);
  const text = await request.text();
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
