// What answers in this page and where sessions are kept, in words: what the page says about privacy follows from it.
import type { Problem } from "../session/turn.ts";
import { look } from "../text/start.ts";

export interface InUse {
  /** The model and its host, as the header names them. */
  readonly model: string;
  /** Where sessions are kept and where messages are sent. */
  readonly privacy: string;
  /** The store, as errors name it. */
  readonly store: string;
  /** The host whose key is needed and was not kept; empty for none. */
  readonly keyless: string;
  /** The host of the worker that runs the agent; empty if this page runs it. */
  readonly worker: string;
}

/** The default settings: the demo model, and IndexedDB. */
export const demoInUse: InUse = { ...look.demo, keyless: "", worker: "" };

export const page = {
  inUse: demoInUse,
  /** Opens the settings; null while they are open. */
  openSettings: null as (() => void) | null,
  /** Says a problem in the words of this page. These words load later; before that, the words of the engine are shown. */
  explain: (problem: Problem): Problem => problem,
};
