// One session as the page holds it: what is stored, what is under way, and the deeds that a person can do in it.
import type { Agent, AgentEvent, Answer, Ask, Call, InputBlock, Slot } from "lockgate";
import { forgetOpen, noteEnding, noteOpen, wasOpen } from "./endings.ts";
import { Insight } from "./insight.ts";
import type { MediaBlock } from "./part.ts";
import { Past } from "./past.ts";
import { asked, codeOf, failed, heard, isLive, problemOf } from "./turn.ts";
import type { Problem, Turn } from "./turn.ts";

/** A call that is under way, or has failed before it was stored. */
interface Live {
  callId: string;
  turn: Turn;
  readonly call: Call | null;
  /** The turn from which on the stored path is not shown while this runs. */
  readonly replaces: string;
  nextSeq: number;
}

/** What a session tells the page that holds it. */
export interface Listener {
  /** Draw again: at once, or with the next frame. */
  changed(when: "now" | "soon"): void;
  /** A deed failed, and nothing else shows it. */
  failed(problem: Problem): void;
}

/** How often a call of another tab is looked after: a tab may be gone without a word. */
const careMs = 4000;

export class Talk {
  readonly slot: Slot;
  readonly insight: Insight;
  draft = "";
  images: readonly MediaBlock[] = [];
  problem: Problem | null = null;
  /** Grows whenever the session's state has changed. */
  version = 0;
  #agent: Agent;
  #listener: Listener;
  #past: Past;
  #live: readonly Live[] = [];
  #over = new Set<string>();
  #shown: readonly Turn[] | null = null;
  #opening: Promise<void> | null = null;
  #reading: Promise<void> = Promise.resolve();
  #care = 0;

  constructor(agent: Agent, slot: Slot, listener: Listener) {
    this.#agent = agent;
    this.slot = slot;
    this.#listener = listener;
    this.#past = new Past(agent, slot);
    this.insight = new Insight(agent, slot, () => listener.changed("now"));
  }

  /** Null until the history is read and nothing was said meanwhile. */
  get turns(): readonly Turn[] | null {
    if (!this.isRead && !this.#live.length) return null;
    return (this.#shown ??= joined(this.#past.turns ?? [], this.#live));
  }

  get isRead(): boolean {
    return this.#past.turns !== null;
  }

  get hasOlder(): boolean {
    return this.#past.hasOlder;
  }

  get isRunning(): boolean {
    return this.#live.some(({ turn }) => isLive(turn));
  }

  get asks(): readonly Ask[] {
    return this.isRunning ? [] : this.insight.asks;
  }

  /** Whether the last question can be asked again. */
  get canResend(): boolean {
    const isBusy = this.#live.some(({ turn }) => turn.accepted || isLive(turn));
    return !isBusy && !this.asks.length && !!this.#past.turns?.at(-1)?.question;
  }

  /** Reads the session once; later calls share that reading. */
  open(): Promise<void> {
    return (this.#opening ??= this.#open());
  }

  /** Reads it again, as another tab may have written it. */
  async reopen(): Promise<void> {
    if (!this.#opening || !this.isRead) return this.open();
    await this.#reread();
  }

  async older(): Promise<void> {
    try {
      if (await this.#past.readOlder()) this.#update("now");
    } catch (error) {
      this.problem = problemOf(error);
      this.#update("now");
    }
  }

  send(text: string, images: readonly MediaBlock[] = []): void {
    this.draft = "";
    this.images = [];
    // What was never stored makes room for the next try.
    this.#live = this.#live.filter(({ turn }) => turn.accepted || isLive(turn));
    const id = crypto.randomUUID();
    this.#begin(asked(id, text, images), () =>
      this.#agent.stream({ id, content: contentOf(text, images) }, this.slot),
    );
  }

  /** Asks the last question again, or another in its place. */
  resend(text?: string): void {
    const last = this.#past.turns?.at(-1);
    if (!last) return;
    const isSame = text === undefined || text === last.question;
    const id = isSame ? last.key : crypto.randomUUID();
    const options = isSame ? {} : { input: { id, content: contentOf(text, last.media) } };
    const turn = asked(id, text ?? last.question, last.media);
    this.#begin(turn, () => this.#agent.resend(this.slot, options), last.key);
  }

  answer(answers: readonly Answer[]): void {
    this.#goOn(() => this.#agent.confirm(this.slot, answers));
  }

  /** Goes on with what was cut off. */
  resume(): void {
    this.#goOn(() => this.#agent.resume(this.slot));
  }

  /** Stops the call that runs; those that wait behind it go on. */
  stop(): void {
    const live = this.#live.find(({ turn }) => isLive(turn));
    if (live?.call) live.call.stop();
    else if (live) void this.#agent.interrupt(this.slot).catch(() => {});
  }

  /** Takes a waiting message back. */
  cancel(key: string): void {
    this.#live.find(({ turn }) => turn.key === key)?.call?.stop();
  }

  async undoCompaction(): Promise<void> {
    await this.#deed(() => this.#agent.undoCompaction(this.slot));
  }

  async switchBranch(branch: string): Promise<void> {
    await this.#deed(() => this.#agent.switchBranch(this.slot, branch));
  }

  /** What happens in this session, in this tab or another. */
  hear(event: AgentEvent): void {
    if (this.#over.has(event.callId)) return;
    const live = this.#live.find(({ callId }) => callId === event.callId) ?? this.#join(event);
    if (!live || event.seq < live.nextSeq) return;
    live.nextSeq = event.seq + 1;
    this.#change(live, heard(live.turn, event));
    this.insight.hear(event);
    if (event.type === "tasks" || event.type === "plan" || event.type.startsWith("compaction"))
      this.version += 1;
    if (event.type === "call-end") {
      const { reason, message } = event.reply;
      // What was taken back while it waited was never said.
      if (!live.turn.accepted) return this.#drop(live);
      // What waits for a person says so by itself.
      if (!["stop", "asking", "suspended"].includes(reason))
        noteEnding(message.id, { reason, problem: null });
      void this.#end(live);
    }
    if (event.type === "error") {
      const { code, partial } = event.error;
      // What somebody took back is no failure.
      if (code === "ABORTED" && !live.turn.accepted) return this.#drop(live);
      this.#noteFailure(live, event.error, partial?.id);
      void this.#end(live);
    }
  }

  /** Something else than a call has changed it, here or in another tab, or a call has ended. */
  async changed(): Promise<void> {
    if (!this.isRead || this.isRunning) return;
    this.version += 1;
    await this.#reread();
  }

  /** The session is gone. */
  forget(): void {
    this.#past.forget();
    this.#live = [];
    this.insight.forget();
    this.#update("now");
  }

  async #open(): Promise<void> {
    try {
      if (wasOpen(this.slot)) await this.#recover();
      await this.#past.read();
      this.problem = null;
      void this.#follow();
      void this.insight.read(this.version);
    } catch (error) {
      this.#opening = null;
      this.problem = problemOf(error);
    }
    this.#update("now");
  }

  /** A page that went away has left a question behind; writing nothing puts it into the log. */
  async #recover(): Promise<void> {
    const info = await this.#agent.session(this.slot);
    if (info?.running || this.isRunning) return;
    if (info) await this.#agent.append(this.slot, []).catch(() => []);
    forgetOpen(this.slot);
  }

  /** Follows the call that another tab runs already, from its beginning. */
  async #follow(): Promise<void> {
    const call = this.isRunning ? null : await this.#agent.attach(this.slot).catch(() => null);
    if (!call) return;
    try {
      for await (const event of call) this.hear(event);
    } catch {
      await this.#reread();
    }
  }

  #begin(turn: Turn, start: () => Call, replaces = ""): void {
    const call = start();
    const live: Live = { callId: call.id, turn, call, replaces, nextSeq: 0 };
    this.#live = [...this.#live, live];
    noteOpen(this.slot);
    this.#update("now");
    call.result.catch((error: unknown) => this.#refused(live, error));
  }

  /** A call that says nothing new goes on in the last turn. */
  #goOn(start: () => Call): void {
    const last = this.#past.turns?.at(-1);
    if (last) this.#begin({ ...last, progress: "running", reason: null, problem: null }, start);
  }

  /** A call that fails before it has events, or whose events did not come. */
  #refused(live: Live, error: unknown): void {
    if (!this.#live.includes(live) || !isLive(live.turn)) return;
    this.#over.add(live.callId);
    if (codeOf(error) === "ABORTED" && !live.turn.accepted) return this.#drop(live);
    this.#noteFailure(live, error);
    void this.#end(live);
  }

  #noteFailure(live: Live, error: unknown, partialId = live.turn.key): void {
    const problem = problemOf(error);
    if (live.turn.accepted) noteEnding(partialId, { reason: null, problem });
    this.#change(live, failed(live.turn, error));
  }

  /** A call that another tab has begun. */
  #join(event: AgentEvent): Live | undefined {
    if (event.type !== "call-start" || event.seq !== 0 || !this.isRead) return undefined;
    const [key] = event.messageIds;
    const last = this.#past.turns?.at(-1);
    const turn: Turn =
      key === undefined && last
        ? { ...last, progress: "running", reason: null, problem: null }
        : { ...asked(key ?? event.callId, ""), at: "" };
    const replaces = last && last.key === key ? key : "";
    const live: Live = { callId: event.callId, turn, call: null, replaces, nextSeq: 0 };
    this.#live = [...this.#live, live];
    this.#care ||= window.setInterval(() => void this.#lookAfter(), careMs);
    return live;
  }

  /** A call of another tab that nobody runs any more has ended without a word. */
  async #lookAfter(): Promise<void> {
    const others = this.#live.filter(({ call, turn }) => !call && isLive(turn));
    if (!others.length) {
      clearInterval(this.#care);
      this.#care = 0;
      return;
    }
    const info = await this.#agent.session(this.slot).catch(() => null);
    if (info?.running) return;
    noteOpen(this.slot);
    for (const live of others) this.#drop(live);
    await this.#recover();
    await this.#reread();
  }

  async #end(live: Live): Promise<void> {
    this.#over.add(live.callId);
    this.version += 1;
    if (!this.isRunning) forgetOpen(this.slot);
    const isKept = !live.turn.accepted && live.turn.problem !== null && !live.replaces;
    if (isKept) {
      if (!this.draft) this.draft = live.turn.question;
      return this.#update("now");
    }
    if (!live.turn.accepted && live.turn.problem) this.#listener.failed(live.turn.problem);
    await this.#reread(live);
  }

  /** Reads the end of the log again, and lets go of the call that has written it. */
  #reread(done?: Live): Promise<void> {
    this.#reading = this.#reading.then(async () => {
      try {
        await this.#past.readEnd();
        this.#live = this.#live.filter((live) => live !== done);
      } catch (error) {
        this.problem = problemOf(error);
      }
      this.#update("now");
      await this.insight.read(this.version);
    });
    return this.#reading;
  }

  async #deed(deed: () => Promise<unknown>): Promise<void> {
    try {
      await deed();
      this.version += 1;
      await this.#reread();
    } catch (error) {
      this.#listener.failed(problemOf(error));
    }
  }

  #drop(live: Live): void {
    this.#over.add(live.callId);
    this.#live = this.#live.filter((one) => one !== live);
    if (!this.isRunning) forgetOpen(this.slot);
    if (live.call && !this.draft) this.draft = live.turn.question;
    this.#update("now");
  }

  #change(live: Live, turn: Turn): void {
    live.turn = turn;
    // Deltas come faster than a screen can show them.
    this.#update("soon");
  }

  #update(when: "now" | "soon"): void {
    this.#shown = null;
    this.#listener.changed(when);
  }
}

/** What is stored, with what is under way in its place. */
function joined(stored: readonly Turn[], live: readonly Live[]): readonly Turn[] {
  let turns = stored;
  // What is said already stands before what waits; what waits in another tab is that tab's own.
  const said = live.filter(({ turn }) => turn.accepted);
  const waiting = live.filter(({ turn, call }) => !turn.accepted && call);
  for (const { turn, replaces } of [...said, ...waiting]) {
    const cut = replaces ? turns.findIndex(({ key }) => key === replaces) : -1;
    if (cut >= 0) turns = turns.slice(0, cut);
    const at = turns.findIndex(({ key }) => key === turn.key);
    turns = at < 0 ? [...turns, turn] : turns.with(at, turn);
  }
  return turns;
}

function contentOf(text: string, images: readonly MediaBlock[]): string | readonly InputBlock[] {
  if (!images.length) return text;
  return text ? [...images, { type: "text", text }] : images;
}
