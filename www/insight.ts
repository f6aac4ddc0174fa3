// What a session's state tells beside its messages: asks, tasks, plan, summary, evicted results and branches.
import type { Agent, AgentEvent, Ask, PlanModeContext, Slot, Task } from "lockgate";
import type { Fork } from "./forks.ts";
import { loadLater } from "./lazy.tsx";

/** A summary that stands in place of older messages, in what the model sees. */
export interface Band {
  readonly nMessages: number;
  /** The last message that it stands for. */
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
  /** Where results are kept that the model sees in part, by the message or the call that they belong to. */
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

  /** Reads it all anew; what was asked for later counts. What cannot be read stays as it was known. */
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
