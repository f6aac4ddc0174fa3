// lockgate/cloudflare in an edge worker.

import { AgentHost } from "../edge/object.js";
import type { Agent, AgentOptions } from "../types.js";
import { createAgent } from "./workerd.js";

export { handle } from "../edge/handle.js";
export type { Caller, HandleOptions } from "../edge/handle.js";

/**
 * A Durable Object that hosts the agent of one user: extend it, say in `options` how the agent is made, and bind the
 * class. Requests come through `handle`. It is a class to be extended because the platform wants one.
 */
export abstract class AgentObject<Env = unknown> extends AgentHost<Env> {
  protected override create(options: AgentOptions): Promise<Agent> {
    return createAgent(options);
  }
}
