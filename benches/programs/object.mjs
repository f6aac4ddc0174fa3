// The smallest worker with an agent in a Durable Object. Its model answers at once, so only the engine is measured.
import { customModel, textOf } from "lockgate";
import { AgentObject, handle } from "lockgate/cloudflare";

const model = customModel({
  id: "echo",
  async *generate({ messages }) {
    for (const word of `you said ${textOf(messages.at(-1))}`.split(" ")) yield { type: "text", text: `${word} ` };
  },
});

export class Helper extends AgentObject {
  options() {
    return { name: "helper", model };
  }
}

export default { fetch: (request, env) => handle(request, { objects: env.HELPER, authenticate: () => ({ userId: "alice" }) }) };
