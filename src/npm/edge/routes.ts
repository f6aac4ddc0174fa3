// What each route of an object does.

import { LockgateError } from "../errors.js";
import type { Agent, Attributes, Input } from "../types.js";
import { ROUTES, STREAMS } from "../wire.js";
import type { RouteName, StreamName } from "../wire.js";
import { begin, follow, show } from "./calls.js";
import { chat, chatMessages, chatStream } from "./chat.js";
import { listen } from "./listen.js";
import { json, notTaken } from "./reply.js";
import type { Turns } from "./turns.js";

/** A request, read. */
export interface Asked {
  readonly slot: { readonly userId: string | null; readonly sessionId: string };
  /** The query, or the body. */
  readonly args: Readonly<Record<string, unknown>>;
  readonly attributes: Attributes;
  readonly accept: string;
  readonly lastEventId: string | null;
  readonly onDisconnect: string | null;
  readonly basePath: string;
  readonly turns: Turns;
  /** Removes everything that the object holds. */
  wipe(): Promise<void>;
}

type Route = { readonly name: RouteName | StreamName; readonly sessionId: string | undefined };

const TABLE = Object.entries({ ...ROUTES, ...STREAMS }).map(([name, [verb, path]]) => ({ name, verb, path: path.split("/") }));

/** The route that a request means, or a response that says what is wrong. */
export function routeOf(verb: string, path: readonly string[]): Route | Response {
  const fitting = TABLE.filter((route) => route.path.length === path.length && route.path.every((part, index) => part === ":id" || part === path[index]));
  const found = fitting.find((route) => route.verb === verb);
  if (found !== undefined) {
    const at = found.path.indexOf(":id");
    return { name: found.name as Route["name"], sessionId: at < 0 ? undefined : path[at] };
  }
  if (fitting.length === 0) return notTaken(404, "there is no such route", "sessions, sessions/{id}/messages and the like: see the README");
  const response = notTaken(405, `this takes no ${verb}`, `use ${fitting.map((route) => route.verb).join(" or ")}`);
  response.headers.set("allow", fitting.map((route) => route.verb).join(", "));
  return response;
}

/** Does what a route says. */
export async function follows(name: Route["name"], agent: Agent, asked: Asked): Promise<Response> {
  switch (name) {
    case "stream":
    case "confirm":
    case "resend":
    case "resume":
      // Asked again while it runs: a client that has lost its connection before it heard anything.
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
      return json({ interrupted: await agent.interrupt(asked.slot) });
    case "subscribe":
      return listen(agent, asked);
    case "exportUser":
      return exported(agent, asked);
    default: {
      const answer = await ANSWERS[name](agent, asked);
      return answer instanceof Response ? answer : json(answer);
    }
  }
}

async function shown(call: ReturnType<Agent["resume"]>, asked: Asked, protocol: "lockgate" | "ai-sdk"): Promise<Response> {
  asked.turns.add(call);
  return show(call, asked, protocol);
}

/** The arguments are the client's: the engine looks at each of them. */
const ANSWERS: { readonly [N in RouteName]: (agent: Agent, asked: Asked) => Promise<unknown> } = {
  listSessions: (agent, { slot, args }) => agent.listSessions(slot.userId, page(args)),
  session: (agent, { slot }) => agent.session(slot),
  renameSession: (agent, { slot, args }) => agent.renameSession(slot, args["title"] as string),
  deleteSession: (agent, asked) => (asked.slot.userId === null ? asked.wipe() : agent.deleteSession(asked.slot)),
  history: (agent, { slot, args }) => agent.history(slot, page(args)),
  asks: (agent, { slot }) => agent.asks(slot),
  append: (agent, { slot, args }) => agent.append(slot, args["messages"] as Parameters<Agent["append"]>[1]),
  interrupt: async (agent, asked) => ({ interrupted: await interrupt(agent, asked) }),
  getAgentState: (agent, { slot }) => agent.getAgentState(slot),
  putAgentState: (agent, { slot, args }) => agent.putAgentState(slot, args["state"] as Parameters<Agent["putAgentState"]>[1]),
  clearContext: (agent, { slot }) => agent.clearContext(slot),
  compact: (agent, { slot }) => agent.compact(slot),
  undoCompaction: (agent, { slot }) => agent.undoCompaction(slot),
  setPermissionMode: (agent, { slot, args }) => agent.setPermissionMode(slot, args["mode"] as Parameters<Agent["setPermissionMode"]>[1]),
  replacePermissions: (agent, { slot, args }) => agent.replacePermissions(slot, args["context"] as Parameters<Agent["replacePermissions"]>[1]),
  enterPlanMode: (agent, { slot }) => agent.enterPlanMode(slot),
  exitPlanMode: (agent, { slot }) => agent.exitPlanMode(slot),
  branches: (agent, { slot }) => agent.branches(slot),
  switchBranch: (agent, { slot, args }) => agent.switchBranch(slot, args["branch"] as string),
  fork: async (agent, { slot, args }) => {
    if (slot.userId === null) throw new LockgateError("ID_INVALID", "an anonymous session cannot be forked here", { hint: "export it, and import it as another" });
    const upTo = args["upTo"] === undefined ? {} : { upTo: args["upTo"] as string };
    return agent.fork(slot, { userId: slot.userId, sessionId: args["to"] as string }, upTo);
  },
  inspect: (agent, { slot }) => agent.inspect(slot),
  repairSession: (agent, { slot }) => agent.repairSession(slot),
  exportSession: async (agent, { slot, args }) => {
    const format = (args["format"] ?? "lockgate") as "lockgate" | "agentscope" | "markdown";
    const type = format === "markdown" ? "text/markdown" : "application/json";
    return new Response(await agent.exportSession(slot, format), { headers: { "content-type": `${type}; charset=utf-8`, "cache-control": "no-store" } });
  },
  importSession: (agent, { slot, args }) => agent.importSession(slot, args["text"] as string),
  search: (agent, { slot, args }) => {
    const { query, sessionId, limit } = { limit: 10, ...page(args) } as { query: string; sessionId?: string; limit: number };
    const within = slot.userId === null ? slot.sessionId : sessionId;
    return agent.search(query, { userId: slot.userId, limit, ...(within === undefined ? {} : { sessionId: within }) });
  },
  deleteUser: (_, asked) => asked.wipe(),
  listFiles: (agent, { slot, args }) => agent.files.list(slot.userId, args["path"] as string | undefined),
  readFile: (agent, { slot, args }) => agent.files.read(slot.userId, args["path"] as string),
  writeFile: (agent, { slot, args }) => agent.files.write(slot.userId, args["path"] as string, args["text"] as string),
  deleteFile: (agent, { slot, args }) => agent.files.delete(slot.userId, args["path"] as string),
  storage: (agent) => agent.storage(),
};

/** Numbers are text in a query. */
function page(args: Asked["args"]): Record<string, never> {
  const { limit } = args;
  return { ...args, ...(typeof limit === "string" ? { limit: Number(limit) } : {}) } as Record<string, never>;
}

/** Stops the call that runs, or a certain one, which may still be waiting. */
async function interrupt(agent: Agent, { slot, args, turns }: Asked): Promise<boolean> {
  const { callId } = args;
  const message = args["message"] as Input | undefined;
  if (callId === undefined) return agent.interrupt(slot, message);
  const call = turns.find(slot.sessionId, String(callId));
  if (call === undefined) return false;
  call.stop(message);
  return true;
}

function exported(agent: Agent, { slot }: Asked): Response {
  const lines = agent.exportUser(slot.userId).pipeThrough(new TextEncoderStream());
  return new Response(lines, { headers: { "content-type": "application/x-ndjson; charset=utf-8", "cache-control": "no-store" } });
}
