// The routes of an object: finds the route of a request, and answers it.

import { LockgateError } from "../errors.js";
import { METHODS, STREAMS } from "../protocol/methods.js";
import type { AgentMethods, Answers, Arguments, MethodName, Right, StreamName } from "../protocol/methods.js";
import { argumentsOf } from "../protocol/wire.js";
import type { Agent, Attributes } from "../types.js";
import type { HoldingMethods } from "../values/internals.js";
import { begin, follow, show } from "./calls.js";
import { chat, chatMessages, chatStream } from "./chat.js";
import { listen } from "./listen.js";
import { type Next, type ByteSource, answerOf, outlet, ownBytes } from "./outlet.js";
import { notTaken } from "./reply.js";
import { checkRemembered, heldBy } from "./rights.js";
import type { Turns } from "./turns.js";

/** A request of a client, with everything that a route may need. */
export interface Asked {
  /** The user, and the session in the path; "" for routes without a session. */
  readonly slot: { readonly userId: string | null; readonly sessionId: string };
  /** The members of the query or of the body. */
  readonly args: Readonly<Record<string, unknown>>;
  /** What the caller may do. */
  readonly rights: readonly Right[];
  /** What `authenticate` returned for the tools and the middleware of the call. */
  readonly attributes: Attributes;
  /** The header `accept`; "" if there is none. */
  readonly accept: string;
  /** The header `last-event-id`: the number of the last event that the client has. */
  readonly lastEventId: string | null;
  /** The parameter `onDisconnect` of the query. */
  readonly onDisconnect: string | null;
  /** The path before the routes, in the URLs of clients. */
  readonly basePath: string;
  /** The calls of the object, and what it holds for its clients. */
  readonly turns: Turns;
  /** Called when a call has begun: its request is unfinished until `ended`. */
  begun(ended: Promise<unknown>): void;
  /** A value as JSON; undefined becomes null. */
  answer(value: unknown): Response;
  /** Deletes everything that the object stores. */
  wipe(): Promise<void>;
}

type Route = { readonly name: MethodName | StreamName; readonly sessionId: string | undefined };

const TABLE = Object.entries({ ...METHODS, ...STREAMS }).map(([name, [verb, path]]) => ({ name, verb, path: path.split("/") }));

/** The route of a request, or a response with 404 or 405. */
export function routeOf(verb: string, path: readonly string[]): Route | Response {
  const fitting = TABLE.filter((route) => route.path.length === path.length && route.path.every((part, index) => part === ":id" || part === path[index]));
  const found = fitting.find((route) => route.verb === verb);
  if (found !== undefined) {
    const at = found.path.indexOf(":id");
    return { name: found.name as Route["name"], sessionId: at < 0 ? undefined : path[at] };
  }
  if (fitting.length === 0) return notTaken(404, "there is no such route", "www/docs/edge.md in the package lists the routes, such as sessions/{id}/messages");
  const response = notTaken(405, `this route does not accept ${verb}`, `use ${fitting.map((route) => route.verb).join(" or ")}`);
  response.headers.set("allow", fitting.map((route) => route.verb).join(", "));
  return response;
}

/** Answers a request to a route. */
export async function follows(name: Route["name"], agent: Agent, asked: Asked): Promise<Response> {
  if (name === "confirm") await checkRemembered(agent, asked);
  switch (name) {
    case "stream":
    case "confirm":
    case "resend":
    case "resume":
      // The same callId while the call runs: the client lost its connection before it got an event.
      if (asked.turns.has(asked.slot.sessionId, asked.args["callId"])) return follow(asked);
      return shown(begin[name](agent, asked), asked, "lockgate");
    case "chat":
      return shown(await chat(agent, asked), asked, "ai-sdk");
    case "attach":
      return follow(asked);
    case "chatMessages":
      return chatMessages(agent, asked);
    case "chatStream":
      return chatStream(agent, asked);
    case "chatStop":
      return asked.answer({ interrupted: await agent.interrupt(asked.slot) });
    case "subscribe":
      return listen(agent, asked);
    case "exportUser":
      return exported(agent, asked);
    default: {
      const answer = await (isSpecial(name) ? SPECIAL[name](agent, asked) : ask(agent, name, asked));
      return answer instanceof Response ? answer : asked.answer(answer);
    }
  }
}

async function shown(call: ReturnType<Agent["resume"]>, asked: Asked, protocol: "lockgate" | "ai-sdk"): Promise<Response> {
  const kept = asked.turns.add(call);
  asked.begun(call.result);
  return show(kept, call.result, asked, protocol);
}

type Askable = { readonly [N in keyof AgentMethods]: (...given: Arguments[N]) => Promise<Answers[N]> };

/** Calls a method of the agent with the arguments that the client sent. */
function ask<N extends keyof AgentMethods>(agent: Askable, name: N, { slot, args }: Asked): Promise<Answers[N]> {
  return agent[name](...argumentsOf(name, slot, args));
}

/** The methods that the worker answers in another way than by a call of the agent's method. */
const SPECIAL = {
  deleteSession: (agent, asked) => (asked.slot.userId === null ? asked.wipe() : asked.turns.whileDeleting(asked.slot.sessionId, () => agent.deleteSession(asked.slot))),
  deleteUser: (_, asked) => asked.wipe(),
  interrupt: async (agent, asked) => ({ interrupted: await interrupt(agent, asked) }),
  fork: async (agent, asked) => {
    const { slot, args } = asked;
    if (slot.userId === null) throw new LockgateError("ID_INVALID", "an anonymous session cannot be forked here", { hint: "export it, and import it as another" });
    const [from, to, options] = argumentsOf("fork", slot, args);
    if (to === undefined) throw new LockgateError("ID_INVALID", "the new session is not named", { hint: 'send { "to": "<sessionId>" }' });
    return holding(agent).fork(from, to, { ...options, ...heldBy(asked) });
  },
  switchBranch: (agent, asked) => holding(agent).switchBranch(...argumentsOf("switchBranch", asked.slot, asked.args), heldBy(asked)),
  putAgentState: (agent, asked) => holding(agent).putAgentState(...argumentsOf("putAgentState", asked.slot, asked.args), heldBy(asked)),
  importSession: (agent, asked) => holding(agent).importSession(...argumentsOf("importSession", asked.slot, asked.args), heldBy(asked)),
  exportSession: async (agent, { slot, args, turns }) => {
    const [session, format = "lockgate"] = argumentsOf("exportSession", slot, args);
    const type = format === "markdown" ? "text/markdown" : "application/json";
    const headers = { "content-type": `${type}; charset=utf-8`, "cache-control": "no-store" };
    return answerOf(turns.held, await agent.exportSession(session, format), { sessionId: slot.sessionId, headers });
  },
  search: async (agent, { slot, args }) => {
    const [query, options] = argumentsOf("search", slot, args);
    const within = slot.userId === null ? { sessionId: slot.sessionId } : {};
    return agent.search(query, { ...options, ...within, userId: slot.userId });
  },
  listFiles: (agent, { slot, args }) => agent.files.list(...argumentsOf("listFiles", slot, args)),
  readFile: (agent, { slot, args }) => agent.files.read(...argumentsOf("readFile", slot, args)),
  writeFile: (agent, { slot, args }) => agent.files.write(...argumentsOf("writeFile", slot, args)),
  deleteFile: (agent, { slot, args }) => agent.files.delete(...argumentsOf("deleteFile", slot, args)),
} as const satisfies { readonly [N in MethodName]?: (agent: Agent, asked: Asked) => Promise<unknown> };

/** The agent of an object is always one of this process. */
const holding = (agent: Agent): HoldingMethods => agent as HoldingMethods;

const isSpecial = (name: MethodName): name is keyof typeof SPECIAL => name in SPECIAL;

/** Stops the running call, or the call `callId`, which may still be waiting. */
async function interrupt(agent: Agent, { slot, args, turns }: Asked): Promise<boolean> {
  const { callId } = args;
  const [, message] = argumentsOf("interrupt", slot, args);
  if (callId === undefined) return agent.interrupt(slot, message);
  if (typeof callId !== "string") throw new LockgateError("ID_INVALID", "callId is not text", { hint: "send the id of a call, or no callId" });
  return turns.find(slot.sessionId, callId)?.stop(message) ?? false;
}

/** The lines of an export. The next line is made when the reader has read the one before. */
function exported(agent: Agent, { slot, turns }: Asked): Response {
  const lines = agent.exportUser(slot.userId).getReader();
  let wake = (): void => {};
  let found: Next = "later";
  let isAsked = false;
  const ask = async (): Promise<void> => {
    isAsked = true;
    try {
      const { done, value } = await lines.read();
      found = done ? "end" : [ownBytes(value)];
    } catch {
      // An export that breaks off must not look complete.
      found = "broken";
    }
    isAsked = false;
    wake();
  };
  const source: ByteSource = {
    next() {
      const next = found;
      if (next === "end" || next === "broken") return next;
      found = "later";
      if (next === "later" && !isAsked) void ask();
      return next;
    },
    onWake: (continues) => (wake = continues),
    leave: (isRead) => void (isRead || lines.cancel().catch(() => {})),
  };
  return new Response(outlet(turns.held, source, { isWhole: true }), { headers: { "content-type": "application/x-ndjson; charset=utf-8", "cache-control": "no-store" } });
}
