// One session in the page: its stored turns, its running calls, and the actions of the user.
import type { Agent, AgentEvent, Answer, Ask, Call, InputBlock, Slot } from "lockgate";
import { Insight } from "./session-state.ts";
import type { MediaBlock } from "./part.ts";
import { Past } from "./stored-turns.ts";
import { asked, failed, heard, isLive, lastId, problemOf } from "./turn.ts";
import type { Problem, Turn } from "./turn.ts";

/** A call that runs, or that failed before its input was stored. */
interface Live {
  callId: string;
  turn: Turn;
  readonly call: Call | null;
  /** The key of the first stored turn that is not shown while this call runs; empty for none. */
  readonly replaces: string;
  nextSeq: number;
  /** Whether the store has taken what the call was given. */
  isStored?: boolean;
  /** Whether its text is back in the composer, and leaves the conversation when it is sent. */
  isInComposer?: boolean;
}

/** What a session reports to the page. */
export interface Listener {
  /** Draw again: at once, or with the next frame. */
  changed(when: "now" | "soon"): void;
  /** An action failed, and the conversation does not show the failure. */
  failed(problem: Problem): void;
}

export class Talk {
  readonly slot: Slot;
  readonly insight: Insight;
  draft = "";
  images: readonly MediaBlock[] = [];
  /** The text of the last question while it is edited. */
  edited: string | null = null;
  problem: Problem | null = null;
  /** Grows when the session's state has changed. */
  version = 0;
  #agent: Agent;
  #listener: Listener;
  #past: Past;
  #live: readonly Live[] = [];
  #over = new Set<string>();
  #shown: readonly Turn[] | null = null;
  #opening: Promise<void> | null = null;
  #reading: Promise<void> = Promise.resolve();

  constructor(agent: Agent, slot: Slot, listener: Listener) {
    this.#agent = agent;
    this.slot = slot;
    this.#listener = listener;
    this.#past = new Past(agent, slot);
    this.insight = new Insight(agent, slot, () => listener.changed("now"));
  }

  /** Null until the history is read or the user has sent something. */
  get turns(): readonly Turn[] | null {
    if (!this.isRead && !this.#live.length) return null;
    return (this.#shown ??= joined(this.#past.turns ?? [], this.#live));
  }

  get isRead(): boolean {
    return this.#past.turns !== null;
  }

  /** Whether the store has no such session, and it is not one that the page has just made up. */
  isLost(isNew: boolean): boolean {
    const { isMissing, wasStored } = this.#past;
    return isMissing && !this.#live.length && (wasStored || !isNew);
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

  /** Whether the last turn was cut off, and can be continued. */
  get canResume(): boolean {
    return this.canResend && this.#past.isCutOff;
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

  /** Reads the session again, because another tab may have changed it. */
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
    this.#live = this.#live.filter(({ isInComposer }) => !isInComposer);
    this.#ask(text, images);
  }

  /** Sends a message again that was not stored. */
  retry(key: string): void {
    const live = this.#live.find(({ turn }) => turn.key === key);
    if (!live) return;
    const { question, media } = live.turn;
    if (live.isInComposer && this.draft === question) {
      this.draft = "";
      this.images = [];
    }
    this.#live = this.#live.filter((one) => one !== live);
    this.#ask(question, media);
  }

  #ask(text: string, images: readonly MediaBlock[]): void {
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

  /** Continues a turn that was cut off. */
  resume(): void {
    this.#goOn(() => this.#agent.resume(this.slot));
  }

  /** Stops the running call. Waiting calls continue. */
  stop(): void {
    const live = this.#live.find(({ turn }) => isLive(turn));
    if (live?.call) live.call.stop();
    else if (live) void this.#agent.interrupt(this.slot).catch(() => {});
  }

  /** Cancels a waiting message. */
  cancel(key: string): void {
    this.#live.find(({ turn }) => turn.key === key)?.call?.stop();
  }

  async undoCompaction(): Promise<void> {
    await this.#deed(() => this.#agent.undoCompaction(this.slot));
  }

  async switchBranch(branch: string): Promise<void> {
    await this.#deed(() => this.#agent.switchBranch(this.slot, branch));
  }

  /** Handles an event of a call in this tab or another one. */
  hear(event: AgentEvent): void {
    if (this.#over.has(event.callId)) return;
    const live = this.#live.find(({ callId }) => callId === event.callId) ?? this.#join(event);
    if (!live || event.seq < live.nextSeq) return;
    live.nextSeq = event.seq + 1;
    live.isStored ||= event.type === "accepted";
    this.#change(live, heard(live.turn, event));
    this.insight.hear(event);
    if (event.type === "tasks" || event.type === "plan" || event.type.startsWith("compaction"))
      this.version += 1;
    if (event.type === "call-end") {
      const { reason, message } = event.reply;
      // The message was cancelled while it waited.
      if (!live.turn.accepted) return this.#drop(live);
      // An open question is shown by its card, so its reason is not noted.
      if (!["stop", "asking", "suspended"].includes(reason))
        this.#past.note(message.id, { reason });
      void this.#end(live);
    }
    if (event.type === "error") {
      const { code, partial } = event.error;
      // A cancelled message is not a failure.
      if (code === "ABORTED" && !live.turn.accepted) return this.#drop(live);
      // The tab that ran the call is gone: the history tells the rest.
      if (code === "SUPERSEDED" && !live.call) return void this.#lose(live);
      this.#noteFailure(live, event.error, partial?.id);
      void this.#end(live);
    }
  }

  /** Called when the session was changed without a call, here or in another tab, or a call has ended. */
  async changed(): Promise<void> {
    if (!this.isRead || this.isRunning) return;
    this.version += 1;
    await this.#reread();
  }

  /** The session is gone. Messages that were never stored stay, because only this page has them. */
  forget(): void {
    this.#past.forget();
    this.#live = this.#live.filter(({ turn, call }) => call && !turn.accepted);
    this.insight.forget();
    this.#update("now");
  }

  async #open(): Promise<void> {
    try {
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

  /** Follows a call that already runs in another tab, from its first event. */
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
    this.#update("now");
    call.result.catch((error: unknown) => this.#refused(live, error));
  }

  /** Takes over what was written in another agent's page and not stored: also failed messages that are not in the composer. */
  takeOver(last: Talk): void {
    const failed = last.#live.filter(({ turn, isInComposer }) => turn.problem && !turn.accepted && !isInComposer);
    this.draft = [last.draft, ...failed.map(({ turn }) => turn.question)].filter(Boolean).join("\n");
    this.images = [...last.images, ...failed.flatMap(({ turn }) => turn.media)];
    this.edited = last.edited;
  }

  /** Starts a call without a new question. It continues the last turn. */
  #goOn(start: () => Call): void {
    const last = this.#past.turns?.at(-1);
    if (last) this.#begin({ ...last, progress: "running", reason: null, problem: null }, start);
  }

  /** Handles the failure of a call whose `error` event did not arrive. */
  #refused(live: Live, error: unknown): void {
    if (!this.#live.includes(live) || !isLive(live.turn)) return;
    this.#over.add(live.callId);
    if (problemOf(error).code === "ABORTED" && !live.turn.accepted) return this.#drop(live);
    this.#noteFailure(live, error);
    void this.#end(live);
  }

  #noteFailure(live: Live, error: unknown, partialId = lastId(live.turn)): void {
    const problem = problemOf(error);
    if (live.turn.accepted) this.#past.note(partialId, { problem });
    this.#change(live, failed(live.turn, error));
  }

  /** Adds a call that another tab has begun. */
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
    return live;
  }

  async #lose(live: Live): Promise<void> {
    this.#drop(live);
    await this.#reread();
  }

  async #end(live: Live): Promise<void> {
    this.#over.add(live.callId);
    this.version += 1;
    const { accepted, problem, question, media } = live.turn;
    if (problem && !accepted && !live.replaces) {
      if (!this.draft && !this.images.length) {
        [this.draft, this.images, live.isInComposer] = [question, media, true];
      }
      return this.#update("now");
    }
    if (problem && live.call && !live.isStored) {
      // The stored turn comes back in its place. A new text of its question is edited again.
      const last = this.#past.turns?.find(({ key }) => key === live.replaces);
      if (last && question !== last.question) this.edited ??= question;
      this.#listener.failed(problem);
    }
    await this.#reread(live);
  }

  /** Reads the end of the log again, and removes the call that has written it. */
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
    if (live.call && !live.replaces) {
      this.draft = [live.turn.question, this.draft].filter(Boolean).join("\n");
      this.images = [...live.turn.media, ...this.images];
    }
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

/** The stored turns, with the turns of running calls added or replaced. */
function joined(stored: readonly Turn[], live: readonly Live[]): readonly Turn[] {
  let turns = stored;
  // Accepted turns come before waiting ones. Turns that wait in another tab are shown only there.
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
