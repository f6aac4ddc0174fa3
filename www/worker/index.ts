// A complete worker: the web UI, and one Durable Object with an agent per visitor.
import { demoModel, openai, tool } from "lockgate";
import type { AgentOptions } from "lockgate";
import { AgentObject, handle } from "lockgate/cloudflare";
import type { Caller, HandleOptions } from "lockgate/cloudflare";

interface Env {
  readonly HELPER: HandleOptions["objects"];
  /** The built web UI. */
  readonly ASSETS: { fetch(request: Request): Promise<Response> };
  /** The URL of an OpenAI-compatible API. Without it the demo model answers. */
  readonly MODEL_URL?: string;
  readonly MODEL?: string;
  /** A secret, set with `wrangler secret put MODEL_KEY`. It is sent only to MODEL_URL. */
  readonly MODEL_KEY?: string;
}

export class Helper extends AgentObject<Env> {
  options({ MODEL_URL, MODEL, MODEL_KEY }: Env): Omit<AgentOptions, "store"> {
    const key = MODEL_KEY === undefined ? {} : { apiKey: MODEL_KEY };
    const isDemo = MODEL_URL === undefined || MODEL === undefined;
    return {
      name: "lockgate",
      systemPrompt: "You are a brief and friendly assistant.",
      model: isDemo ? demoModel({ delayMs: 15 }) : openai({ baseUrl: MODEL_URL, model: MODEL, ...key }),
      tools: [clock, add, publish, alwaysFails],
      workspace: true,
      taskList: true,
    };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (!new URL(request.url).pathname.startsWith("/agent/")) return page(request, env);
    return handle(request, { objects: env.HELPER, basePath: "/agent", authenticate: visitor });
  },
};

const COOKIE = /(?:^|; )visitor=([0-9a-f-]{36})(?:;|$)/;

/** A cookie identifies the visitor. Replace this by your own sign-in. */
function visitor(request: Request): Caller | Response {
  const id = COOKIE.exec(request.headers.get("cookie") ?? "")?.[1];
  // Visitors have only their own sessions, so they may also set what the tools may do there, as the page offers it.
  if (id !== undefined) return { userId: id, rights: ["talk", "manage", "permissions"] };
  const said = { code: "UNAUTHORIZED", message: "you are not signed in", hint: "open the page first", status: 401, retryable: false };
  return Response.json(said, { status: 401 });
}

/** The web UI with the URL of its agent. Sets the cookie if the visitor has none. */
async function page(request: Request, { ASSETS }: Env): Promise<Response> {
  const found = await ASSETS.fetch(request);
  if (!(found.headers.get("content-type") ?? "").startsWith("text/html")) return found;
  const told = new HTMLRewriter()
    .on("head", { element: (head) => head.append('<meta name="lockgate-remote" content="/agent">', { html: true }) })
    .transform(found);
  const response = new Response(told.body, told);
  if (COOKIE.test(request.headers.get("cookie") ?? "")) return response;
  const secure = request.url.startsWith("https:") ? "; Secure" : "";
  response.headers.append("set-cookie", `visitor=${crypto.randomUUID()}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000${secure}`);
  return response;
}

const clock = tool({
  name: "clock",
  description: "The time now, at the edge.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => ({ now: new Date().toISOString() }),
});

const add = tool<{ readonly a: number; readonly b: number }>({
  name: "add",
  description: "The sum of two numbers.",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  readOnly: true,
  execute: ({ a, b }) => a + b,
});

const publish = tool<{ readonly text: string }>({
  name: "publish",
  description: "Pretends to publish a text, when somebody has approved it.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  needsApproval: true,
  execute: ({ text }) => `published: ${text}`,
});

const alwaysFails = tool({
  name: "always_fails",
  description: "Throws whenever it is called, to show what a failing tool looks like.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => {
    throw new Error("this tool always fails, on purpose");
  },
});
