// The state of a session besides its messages: asks, tasks, plan, summary, evicted results and branches.
import type { Agent, AgentEvent, Ask, PlanModeContext, Slot, Task } from "lockgate";
import type { Fork } from "./branches.ts";
import { loadLater } from "../app/lazy.tsx";

/** A summary that replaces older messages in the model's context. */
export interface Band {
  readonly nMessages: number;
  /** The id of the last message that it replaces. */
  readonly last: string;
}

const noForks: ReadonlyMap<string, Fork> = new Map();
const noPlan: PlanModeContext = { plan_active: false, current_plan_file: null };

export class Insight {
  asks: readonly Ask[] = [];
  tasks: readonly Task[] = [];
  plan: PlanModeContext = noPlan;
  planText = "";
  band: Band | null = null;
  summary = "";
  /** The paths of results that the model sees only in part, by the id of their message or tool call. */
  evicted: ReadonlyMap<string, string> = new Map();
  forks = noForks;
  #agent: Agent;
  #slot: Slot;
  #changed: () => void;
  #version = -1;

  constructor(agent: Agent, slot: Slot, changed: () => void) {
    this.#agent = agent;
    this.#slot = slot;
    this.#changed = changed;
  }

  hear(event: AgentEvent): void {
    if (event.type === "tasks") this.tasks = event.tasks;
    if (event.type === "plan") void this.readPlan(event.plan);
    if (event.type === "call-end") this.asks = event.reply.asks;
    if (event.type === "evicted")
      this.evicted = new Map([...this.evicted, [event.toolCallId, event.path]]);
  }

  /** Reads everything again. Only the newest read is reported. What cannot be read keeps its old value. */
  async read(version: number): Promise<void> {
    this.#version = version;
    const [agent, slot] = [this.#agent, this.#slot];
    const info = await agent.session(slot).catch(() => undefined);
    if (info === undefined) return;
    if (info === null) return this.forget();
    const later = await loadLater().catch(() => undefined);
    await later?.readInsight(this, { agent, slot, info });
    if (this.#version === version) this.#changed();
  }

  forget(): void {
    this.asks = [];
    this.tasks = [];
    this.plan = noPlan;
    this.band = null;
    this.forks = noForks;
  }

  async readPlan(plan: PlanModeContext): Promise<void> {
    this.plan = plan;
    const path = plan.current_plan_file;
    const text = path && (await this.#agent.files.read(this.#slot.userId ?? null, path).catch(() => ""));
    this.planText = text || "";
    this.#changed();
  }
}
