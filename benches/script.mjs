// The work of every engine: the same questions, the same tool, and a model that follows the same script.

const filler = "the quick brown fox jumps over the lazy dog while the river runs slowly past the old mill and the rain keeps falling ";

/** About two hundred characters that differ from place to place. */
const prose = (start) => `${start} ${filler}${filler}`.slice(0, 200);

export const instructions = "You are brief.";
export const question = (n) => prose(`question ${n}:`);
export const answer = prose("answer:");
export const toolOutput = prose("forecast:");
export const toolName = "forecast";
export const toolDescription = "The weather of a city";
export const toolInput = { city: "Reykjavik", days: 3 };
export const toolSchema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "number" } },
  required: ["city", "days"],
  additionalProperties: false,
};

/** How many messages a turn adds: the question, the call of the tool, its result, the answer. */
export const MESSAGES_PER_TURN = 4;

/** The word of which a streamed answer is made, as models send them. */
export const word = "word ";

const tick = () => new Promise((resolve) => setImmediate(resolve));

/**
 * The answers of the model. It reads only the last message of a request, so any cost that grows with the history is the
 * engine's. `nDeltas`: no tool, but an answer of that many pieces; `paced`: with a turn of the event loop before each.
 * `ticks`: every reply takes a turn of the event loop, so that calls made at once overlap.
 */
export class Script {
  #ticks;
  /** How many messages the model saw, by request. */
  seen = [];

  constructor({ nDeltas = 0, paced = false, ticks = false } = {}) {
    this.nDeltas = nDeltas;
    this.paced = paced;
    this.#ticks = ticks;
  }

  /** The next thing to say, given whether a tool's result ends the request, and how many messages there are. */
  async next(afterTool, nMessages) {
    if (this.#ticks) await tick();
    if (!afterTool) this.seen.push(nMessages);
    if (this.nDeltas > 0) return { pieces: this.#pieces() };
    return afterTool ? { text: answer } : { calls: true };
  }

  async *#pieces() {
    for (let n = 0; n < this.nDeltas; n++) {
      if (this.paced) await tick();
      yield word;
    }
  }
}

let ids = 0;

/** An id for a tool call or a message. */
export const newId = () => `id-${++ids}`;
