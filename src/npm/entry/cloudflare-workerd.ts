// lockgate/cloudflare in an edge worker.

import { AgentHost } from "../edge/object.js";
import type { Agent, AgentOptions } from "../types.js";
import { createAgent } from "./workerd.js";

export { handle } from "../edge/handle.js";
export type { Caller, HandleOptions, Right } from "../edge/handle.js";

/**
 * A Durable Object that hosts the agent of one user: extend the class, return the options of the agent from `options`, and bind
 * the class. `handle` sends the requests. It is a class because the platform requires one.
 */
export abstract class AgentObject<Env = unknown> extends AgentHost<Env> {
  /** Creates the agent with `lockgate` for workerd. */
  protected override create(options: AgentOptions): Promise<Agent> {
    return createAgent(options);
  }
}
