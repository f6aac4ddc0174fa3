// lockgate/remote: an agent that runs in a worker, with the methods of a local agent.

import { LockgateError } from "../errors.js";
import { streamOf } from "../call/event-buffer.js";
import { RemoteCall, following } from "./call.js";
import { RemoteEvents } from "./events.js";
import { Wire } from "./requests.js";
import type { RemoteOptions } from "./requests.js";
import { jsonSchema } from "../values/schema.js";
import { METHODS } from "../protocol/methods.js";
import type { Answers, Arguments, MethodName, StreamName } from "../protocol/methods.js";
import type { Agent, Call, CallOptions, InferSchema, Input, Schema, Slot } from "../types.js";

export type { RemoteOptions } from "./requests.js";

/**
 * The agent behind `handle(request, …)`, at `url`. The worker decides whose sessions a client reaches, so a `userId` is not sent.
 * If the connection of a call breaks, the call continues after a reconnect; it never runs twice. `model` and `attributes` of a
 * call and `listUsers` are refused with OPTIONS. `shutdown` and `close` end this client, not the agent in the worker.
 */
export function remoteAgent(options: RemoteOptions): Agent {
  const wire = new Wire(options);
  const calls = new Set<RemoteCall>();
  const lines = new Map<string, Promise<void>>();
  const events = new RemoteEvents(wire);
  let closed = false;

  const whileOpen = <T>(ask: () => Promise<T>): Promise<T> => (closed ? Promise.reject(gone()) : ask());

  const begin = <S extends Schema = never>(name: StreamName, slot: Slot | undefined, body: Readonly<Record<string, unknown>>, given: CallOptions<S> = {}): Call<InferSchema<S>> => {
    const call = new RemoteCall({ wire, name, slot: slot ?? { sessionId: "" }, body, options: given });
    // The calls of a session keep their order: each is sent when the previous one has its place in the queue.
    const line = JSON.stringify([slot?.userId ?? null, slot?.sessionId]);
    const before = lines.get(line) ?? Promise.resolve();
    const problem = closed ? gone() : problemOf(given);
    const placed = problem === undefined ? call.begin(before) : call.refuse(problem);
    lines.set(line, placed);
    void placed.finally(() => lines.get(line) === placed && lines.delete(line));
    calls.add(call);
    const end = (): void => void calls.delete(call);
    call.result.then(end, end);
    // The output is checked against the schema before the call resolves.
    return call as Call<InferSchema<S>>;
  };
  const drain = async (): Promise<void> => void (await Promise.allSettled([...calls].map((call) => call.result)));
  const shutdown = async (): Promise<void> => {
    closed = true;
    events.close();
    await drain();
  };
  const stream = <S extends Schema = never>(input: Input, context?: Slot & CallOptions<S>): Call<InferSchema<S>> => begin("stream", context, { input }, context);
  const { listFiles, readFile, writeFile, deleteFile, ...methods } = methodsOf((name, given) => whileOpen(() => wire.ask(name, given)));

  const agent: Agent = {
    ...methods,
    name: options.url,
    call: <S extends Schema = never>(input: Input, context?: Slot & CallOptions<S>) => stream(input, context).result,
    stream,
    resend: (slot, given = {}) => begin("resend", slot, { input: given.input, from: given.from }, given),
    confirm: (slot, answers, given) => begin("confirm", slot, { answers }, given),
    resume: (slot, given) => begin("resume", slot, {}, given),
    attach: (slot, { after } = {}) => following(wire, slot, after ?? -1),
    subscribe: events.subscribe.bind(events),
    interrupt: (slot, message) => whileOpen(() => wire.interrupt(slot, { message })),
    listUsers: () => Promise.reject(notOffered("listUsers", "a worker knows only the user that its authenticate returns")),
    exportUser: () => streamOf(wire.lines("exportUser")),
    files: Object.freeze({ list: listFiles, read: readFile, write: writeFile, delete: deleteFile }),
    shutdown,
    drain,
    close: shutdown,
    [Symbol.asyncDispose]: shutdown,
  };
  return Object.freeze(agent);
}

type RemoteMethods = { [N in MethodName]: (...given: Arguments[N]) => Promise<Answers[N]> };

/** A function for each method of the table, which calls `ask`. */
function methodsOf(ask: <N extends MethodName>(name: N, given: Arguments[N]) => Promise<Answers[N]>): RemoteMethods {
  const methods: { [N in MethodName]?: unknown } = {};
  for (const name of Object.keys(METHODS) as MethodName[]) methods[name] = (...given: Arguments[typeof name]) => ask(name, given);
  // The loop has added every method of the table.
  return methods as RemoteMethods;
}

/** The reason why a call with these options cannot be sent; undefined if it can be sent. */
function problemOf({ model, attributes, outputSchema, signal }: CallOptions): LockgateError | undefined {
  if (model !== undefined) return notOffered("a model per call", "the worker has the models and their keys");
  if (attributes !== undefined) return notOffered("attributes", "return them from authenticate in the worker");
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
