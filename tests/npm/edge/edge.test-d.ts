// The types of the edge and its clients. Compiled by types.test.mjs, never run.
import { createAgent, demoModel } from "lockgate";
import type { Agent, Answer, Call, InputMsg, Msg } from "lockgate";
import { readUiRequest, toUiMessages } from "lockgate/ai-sdk";
import type { UiMessage, UiRequest } from "lockgate/ai-sdk";
import { AgentObject, handle } from "lockgate/cloudflare";
import type { Caller, HandleOptions } from "lockgate/cloudflare";
import { remoteAgent } from "lockgate/remote";

interface Env {
  readonly HELPER: HandleOptions["objects"];
  readonly KEY: string;
}

export class Helper extends AgentObject<Env> {
  options(env: Env) {
    return { name: env.KEY, model: demoModel(), compaction: true };
  }
  async titles(): Promise<string[]> {
    const agent: Agent = await this.agent;
    const key: string = this.env.KEY;
    return (await agent.listSessions(key)).map(({ title }) => title);
  }
}
// @ts-expect-error the options of the agent are missing
export class Empty extends AgentObject<Env> {}
export class Wrong extends AgentObject<Env> {
  // @ts-expect-error an agent has a model
  options() {
    return { name: "helper" };
  }
}
const made: { fetch(request: Request): Promise<Response>; alarm(): Promise<void> } = new Helper({}, { HELPER: {} as Env["HELPER"], KEY: "k" });
void made;

const authenticate = async (request: Request): Promise<Caller | Response> =>
  request.headers.has("cookie") ? { userId: "alice", attributes: { admin: true } } : new Response(null, { status: 401 });
export const fetched = (request: Request, env: Env): Promise<Response> =>
  handle(request, { objects: env.HELPER, authenticate, basePath: "/agent", origins: ["https://example.org"], maxBodyBytes: 1_000, rateLimit: ({ userId }) => userId !== null });
// @ts-expect-error authenticate is missing
handle(new Request("https://example.org"), { objects: {} as Env["HELPER"] });

const agent: Agent = remoteAgent({ url: "/agent", headers: async () => ({ authorization: "Bearer x" }) });
const call: Call = agent.stream("hello", { sessionId: "s" });
const responses: readonly Response[] = [call.toResponse(), call.toResponse("ai-sdk", { status: 200, onDisconnect: "stop" })];
// @ts-expect-error there is no such protocol
call.toResponse("soap");
// @ts-expect-error the url of the worker is missing
remoteAgent({});

const asked: UiRequest = readUiRequest(JSON.parse("{}"));
const said: InputMsg | readonly Answer[] | undefined = asked.kind === "message" ? asked.input : asked.kind === "answers" ? asked.answers : asked.input;
const shown: UiMessage[] = toUiMessages([] as Msg[]);
void [responses, said, shown, createAgent];
