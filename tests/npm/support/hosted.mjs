// A worker with an AgentObject in workerd, whose model and tools are HTTP servers that the test controls.
import http from "node:http";
import { capture } from "../../../src/build/run.mjs";
import { startWorker } from "./worker.mjs";

/** The source of the worker. Its model and tools are behind HTTP. `body` has more members of the object's class. */
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
      return { userId: user === "anonymous" ? null : user, attributes: { from: user }, rights: request.headers.get("x-rights")?.split(" ") };
    },
    rateLimit: (caller) => caller.userId !== "greedy",
    ${more}
  }),
};
`;

/** A model and tools on this machine. A question that starts with "hold" is answered in two parts; the test releases the second. */
export async function startPlace() {
  const held = new Map();
  const waiting = [];
  const place = {
    asked: [],
    /** The inputs of all tool calls, in order. */
    ran: [],
    sockets: new Set(),
    /** Called and awaited when a tool has run. If it returns false, the result is not sent. */
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
    // The client was killed during the request.
    if (text === undefined) return;
    if (request.url === "/tool") {
      place.ran.push(JSON.parse(text));
      // A tool that must not answer leaves its client waiting.
      if ((await place.onTool?.()) === false) return;
      return response.end(`ran ${JSON.parse(text).word}`);
    }
    place.asked.push(text);
    if (!text.startsWith("hold")) return place.answer(text, response);
    response.write("one ");
    held.set(text, response);
    for (const [wanted, resolve] of waiting) if (wanted === text) resolve();
  });
  // Connections that are closed while they are reused are not tested here.
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

/** Starts the worker. `kill` ends its process at once, like a machine failure. */
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

/** The running workerd processes that this process has started. */
async function workerds() {
  const { stdout } = await capture("ps", ["-A", "-o", "pid=,ppid=,comm="]);
  const rows = stdout.trim().split("\n").map((line) => line.trim().split(/\s+/));
  return rows.filter(([, parent, name]) => Number(parent) === process.pid && name.includes("workerd")).map(([pid]) => Number(pid));
}

/** Sends a request to the worker as a user, with these rights if they are given. With `body` it is a POST unless a method is given. */
export function asker(hosted, user, rights) {
  return async (path, body, init = {}) => {
    const { headers, ...rest } = init;
    return fetch(`${hosted().url}/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...(user === undefined ? {} : { "x-user": user }), ...(rights === undefined ? {} : { "x-rights": rights }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      ...rest,
    });
  };
}

/** The events of a response, as they arrive. */
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

/** All events of a response. */
export async function allOf(response) {
  const events = [];
  for await (const event of eventsOf(response)) events.push(event);
  return events;
}
