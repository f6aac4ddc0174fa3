// A worker with an AgentObject in workerd, and the model and tools it asks over HTTP: those a test holds in its hand.
import http from "node:http";
import { capture } from "../../src/build/run.mjs";
import { startWorker } from "./worker.mjs";

/** The worker: its model and its tools are somewhere else. `body` are more members of the object's class. */
export const workerSource = (body = "", more = "") => `
import { customModel, textOf, tool } from "lockgate";
import { AgentObject, handle } from "lockgate/cloudflare";

const model = (place) => customModel({
  id: "far away",
  async *generate({ messages }, { signal }) {
    const last = messages.findLast(({ metadata }) => metadata?.reminder !== true);
    if (last.role === "tool") return yield { type: "text", text: "the tool said: " + textOf(last.content.flatMap(({ output = [] }) => output)) };
    const said = textOf(last);
    const [, name, word] = /^use (\\w+) ?(.*)$/.exec(said) ?? [];
    if (name !== undefined) return yield { type: "tool-call", index: 0, name, arguments: JSON.stringify({ word }) };
    const response = await fetch(place + "/model", { method: "POST", body: said, signal });
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) yield { type: "text", text };
  },
});
const inputSchema = { type: "object", properties: { word: { type: "string" } } };
const tools = (place) => {
  const run = async ({ word }, { toolCallId, attributes }) => {
    const response = await fetch(place + "/tool", { method: "POST", body: JSON.stringify({ word, toolCallId, attributes }) });
    return response.text();
  };
  return [
    tool({ name: "count", description: "Counts.", inputSchema, execute: run }),
    tool({ name: "post", description: "Publishes.", inputSchema, needsApproval: true, execute: run }),
    tool({ name: "outside", description: "Is done by the client.", inputSchema }),
  ];
};
export class Helper extends AgentObject {
  options({ PLACE }) {
    return { name: "helper", model: model(PLACE), tools: tools(PLACE), workspace: true, planMode: true, retries: { initialMs: 1 }, ...this.more?.() };
  }
  ${body}
}
export default {
  fetch: (request, env) => handle(request, {
    objects: env.HELPER,
    basePath: "/agent",
    origins: ["https://friend.example"],
    maxBodyBytes: 100_000,
    authenticate: (request) => {
      const user = request.headers.get("x-user");
      if (user === null) return new Response("who are you?", { status: 401 });
      return { userId: user === "anonymous" ? null : user, attributes: { from: user } };
    },
    rateLimit: (caller) => caller.userId !== "greedy",
    ${more}
  }),
};
`;

/** A model and tools on this machine. A question that begins with "hold" is answered in two parts: the second when it is let go. */
export async function startPlace() {
  const held = new Map();
  const waiting = [];
  const place = {
    asked: [],
    /** What each tool call was run with, in order. */
    ran: [],
    sockets: new Set(),
    /** Called, and waited for, when a tool has run; false: nobody is told. */
    onTool: undefined,
    /** Resolves when this question is being answered. */
    reached: (text) => (held.has(text) ? Promise.resolve() : new Promise((resolve) => waiting.push([text, resolve]))),
    letGo(text) {
      held.get(text)?.end("two");
      held.delete(text);
    },
    answer: (text, response) => response.end(`you said ${text}`),
  };
  const server = http.createServer(async (request, response) => {
    const text = await textOf(request);
    // Whoever asked was killed in the middle of it.
    if (text === undefined) return;
    if (request.url === "/tool") {
      place.ran.push(JSON.parse(text));
      // One that is not to answer leaves whoever asked waiting.
      if ((await place.onTool?.()) === false) return;
      return response.end(`ran ${JSON.parse(text).word}`);
    }
    place.asked.push(text);
    if (!text.startsWith("hold")) return place.answer(text, response);
    response.write("one ");
    held.set(text, response);
    for (const [wanted, resolve] of waiting) if (wanted === text) resolve();
  });
  // A connection that is closed while somebody begins to use it again is not what is tested here.
  server.keepAliveTimeout = 600_000;
  server.on("connection", (socket) => {
    place.sockets.add(socket);
    socket.on("close", () => place.sockets.delete(socket));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  place.url = `http://127.0.0.1:${server.address().port}`;
  place.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return place;
}

async function textOf(request) {
  let text = "";
  try {
    for await (const chunk of request) text += chunk;
    return text;
  } catch {
    return undefined;
  }
}

/** Starts the worker; `kill` ends its process at once, as a machine that fails does. */
export async function startHosted(place, { source = workerSource(), settings = {} } = {}) {
  const before = await workerds();
  const { miniflare } = await startWorker(source, {
    bindings: { PLACE: place.url },
    durableObjects: { HELPER: { className: "Helper", useSQLite: true } },
    host: "127.0.0.1",
    port: 0,
    compatibilityDate: "2026-04-01",
    ...settings,
  });
  const [pid] = (await workerds()).filter((each) => !before.includes(each));
  const root = (await miniflare.ready).href.replace(/\/$/, "");
  return {
    miniflare,
    pid,
    url: `${root}/agent`,
    kill: async () => {
      process.kill(pid, "SIGKILL");
      await miniflare.dispose().catch(() => {});
    },
    stop: () => miniflare.dispose(),
  };
}

/** The workerd processes that this one has started and that still run. */
async function workerds() {
  const { stdout } = await capture("ps", ["-A", "-o", "pid=,ppid=,comm="]);
  const rows = stdout.trim().split("\n").map((line) => line.trim().split(/\s+/));
  return rows.filter(([, parent, name]) => Number(parent) === process.pid && name.includes("workerd")).map(([pid]) => Number(pid));
}

/** Asks the worker as a user; `body` makes it a POST unless a verb is given. */
export function asker(hosted, user) {
  return async (path, body, init = {}) => {
    const { headers, ...rest } = init;
    return fetch(`${hosted().url}/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { ...(user === undefined ? {} : { "x-user": user }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...rest,
    });
  };
}

/** The events of a response, as they come. */
export async function* eventsOf(response) {
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data === undefined) continue;
      yield data === "[DONE]" ? data : JSON.parse(data);
    }
  }
}

/** Everything that a response says. */
export async function allOf(response) {
  const events = [];
  for await (const event of eventsOf(response)) events.push(event);
  return events;
}
