// lockgate/remote: an agent that lives in a worker, with the surface of one that lives here.

import { LockgateError } from "./errors.js";
import { streamOf } from "./feed.js";
import { RemoteCall, following } from "./remote-call.js";
import { RemoteEvents } from "./remote-events.js";
import { Wire } from "./remote-wire.js";
import type { RemoteOptions } from "./remote-wire.js";
import { jsonSchema } from "./schema.js";
import type { Agent, CallOptions, Input, Schema, Slot } from "./types.js";
import type { RouteName, StreamName } from "./wire.js";

export type { RemoteOptions } from "./remote-wire.js";

/**
 * The agent behind `handle(request, …)`, at `url`. Whose sessions they are the worker decides: a `userId` here names nothing.
 * A call whose connection breaks is taken up again where it broke, and never runs twice. `model` and `attributes` of a
 * call and `listUsers` cannot be offered: OPTIONS. `shutdown` and `close` end this client, not the worker's agent.
 */
export function remoteAgent(options: RemoteOptions): Agent {
  const wire = new Wire(options);
  const calls = new Set<RemoteCall>();
  const lines = new Map<string, Promise<void>>();
  const events = new RemoteEvents(wire);
  let closed = false;

  /** Asks for what is answered once. */
  const ask = <T>(name: RouteName, slot: Slot | undefined, args: Readonly<Record<string, unknown>> = {}): Promise<T> =>
    closed ? Promise.reject(gone()) : wire.ask<T>(name, slot, args);

  const begin = (name: StreamName, slot: Slot | undefined, body: Readonly<Record<string, unknown>>, given: CallOptions = {}): RemoteCall => {
    const call = new RemoteCall({ wire, name, slot: slot ?? { sessionId: "" }, body, options: given });
    // The calls of a session keep their order: each is sent when the one before it has its place.
    const line = JSON.stringify([slot?.userId ?? null, slot?.sessionId]);
    const before = lines.get(line) ?? Promise.resolve();
    const problem = closed ? gone() : problemOf(given);
    const placed = problem === undefined ? call.begin(before) : call.refuse(problem);
    lines.set(line, placed);
    void placed.finally(() => lines.get(line) === placed && lines.delete(line));
    calls.add(call);
    const end = (): void => void calls.delete(call);
    call.result.then(end, end);
    return call;
  };
  const drain = async (): Promise<void> => void (await Promise.allSettled([...calls].map((call) => call.result)));
  const shutdown = async (): Promise<void> => {
    closed = true;
    events.close();
    await drain();
  };
  const stream = (input: Input, context?: Slot & CallOptions): RemoteCall => begin("stream", context, { input }, context);

  const agent = {
    name: options.url,
    call: (input: Input, context?: Slot & CallOptions) => stream(input, context).result,
    stream,
    resend: (slot: Slot, given: CallOptions & { readonly input?: Input } = {}) => begin("resend", slot, { input: given.input }, given),
    confirm: (slot: Slot, answers: unknown, given?: CallOptions) => begin("confirm", slot, { answers }, given),
    resume: (slot: Slot, given?: CallOptions) => begin("resume", slot, {}, given),
    attach: (slot: Slot, { after }: { readonly after?: number } = {}) => following(wire, slot, after ?? -1),
    subscribe: events.subscribe.bind(events),
    asks: (slot: Slot) => ask("asks", slot),
    session: (slot: Slot) => ask("session", slot),
    append: (slot: Slot, messages: unknown) => ask("append", slot, { messages }),
    interrupt: async (slot: Slot, message?: Input) => (await ask<{ interrupted: boolean }>("interrupt", slot, { message })).interrupted,
    getAgentState: (slot: Slot) => ask("getAgentState", slot),
    putAgentState: (slot: Slot, state: unknown) => ask("putAgentState", slot, { state }),
    clearContext: (slot: Slot) => ask("clearContext", slot),
    compact: (slot: Slot) => ask("compact", slot),
    undoCompaction: (slot: Slot) => ask("undoCompaction", slot),
    setPermissionMode: (slot: Slot, mode: unknown) => ask("setPermissionMode", slot, { mode }),
    replacePermissions: (slot: Slot, context: unknown) => ask("replacePermissions", slot, { context }),
    enterPlanMode: (slot: Slot) => ask("enterPlanMode", slot),
    exitPlanMode: (slot: Slot) => ask("exitPlanMode", slot),
    listSessions: (_userId: string | null, page: object = {}) => ask("listSessions", undefined, { ...page }),
    listUsers: () => Promise.reject(notOffered("listUsers", "a worker knows only whom its authenticate names")),
    exportUser: () => streamOf(wire.lines("exportUser")),
    history: (slot: Slot, page: object = {}) => ask("history", slot, { ...page }),
    search: (query: string, { sessionId, limit }: { readonly sessionId?: string; readonly limit?: number }) => ask("search", undefined, { query, sessionId, limit }),
    branches: (slot: Slot) => ask("branches", slot),
    switchBranch: (slot: Slot, branch: string) => ask("switchBranch", slot, { branch }),
    fork: (slot: Slot, to: Slot, { upTo }: { readonly upTo?: string } = {}) => ask("fork", slot, { to: to.sessionId, upTo }),
    renameSession: (slot: Slot, title: string) => ask("renameSession", slot, { title }),
    deleteSession: (slot: Slot) => ask("deleteSession", slot),
    deleteUser: () => ask("deleteUser", undefined),
    exportSession: (slot: Slot, format = "lockgate") => wire.text("exportSession", slot, { format }),
    importSession: (slot: Slot, text: string) => ask("importSession", slot, { text }),
    repairSession: (slot: Slot) => ask("repairSession", slot),
    inspect: (slot: Slot) => ask("inspect", slot),
    files: Object.freeze({
      read: (_: string | null, path: string) => ask("readFile", undefined, { path }),
      write: (_: string | null, path: string, text: string) => ask("writeFile", undefined, { path, text }),
      list: (_: string | null, path?: string) => ask("listFiles", undefined, { path }),
      delete: (_: string | null, path: string) => ask("deleteFile", undefined, { path }),
    }),
    storage: () => ask("storage", undefined),
    shutdown,
    drain,
    close: shutdown,
    [Symbol.asyncDispose]: shutdown,
  };
  // The answers are what the worker's agent answers with: its own types hold for them.
  return Object.freeze(agent) as unknown as Agent;
}

/** What a call here cannot be given. */
function problemOf({ model, attributes, outputSchema, signal }: CallOptions): LockgateError | undefined {
  if (model !== undefined) return notOffered("a model of its own", "the worker has the models, and their keys");
  if (attributes !== undefined) return notOffered("attributes", "authenticate of the worker says them");
  if (signal?.aborted === true) return new LockgateError("ABORTED", "the call was aborted by its signal", { cause: signal.reason });
  try {
    if (outputSchema !== undefined) jsonSchema(outputSchema as Schema, "the output");
  } catch (error) {
    return error as LockgateError;
  }
  return undefined;
}

function notOffered(what: string, hint: string): LockgateError {
  return new LockgateError("OPTIONS", `a remote agent does not offer ${what}`, { hint });
}

function gone(): LockgateError {
  return new LockgateError("SHUTTING_DOWN", "the agent is closed", { hint: "make a new one" });
}
