// The list of measures: the engines and the rounds of each, and the titles of the rows in the table.

const everyone = ["lockgate", "hand", "ai", "langgraph", "langgraph-sqlite", "openai", "mastra", "pi"];
const once = everyone.filter((name) => name !== "langgraph-sqlite");
const light = ["lockgate", "hand", "ai", "openai", "pi"];

const lengths = [0, 100, 1_000, 10_000];
const count = (n) => n.toLocaleString("en");
const messages = (n) => (n === 0 ? "an empty history" : `${count(n)} messages`);

/**
 * By the name for `--only`. `full` and `quick` have the settings and rounds of the two modes, and the engines if a mode
 * has fewer of them. A row's `better` says which direction is ahead; a row without it is a count, shown unchanged.
 */
export const measures = {
  call: {
    engines: everyone,
    full: { rounds: 3, lengths, forMs: 700 },
    quick: { rounds: 1, lengths: [0, 100, 1_000], forMs: 300 },
    rows: ({ lengths }) => [
      ...lengths.map((n) => ({ id: `call.${n}`, title: `time of a call on ${messages(n)}`, unit: "µs", better: "less" })),
      ...lengths.map((n) => ({ id: `bytes.${n}`, title: `bytes written by a call on ${messages(n)}`, unit: "B", better: "less" })),
      { id: "growth", title: "… time on 10,000 messages beside that on 100", unit: "×" },
    ],
  },
  delta: {
    engines: once,
    full: { rounds: 3, nDeltas: 10_000, atMost: 5, forMs: 1_500 },
    quick: { rounds: 1, nDeltas: 1_000, atMost: 4, forMs: 200 },
    rows: ({ nDeltas }) => [
      { id: "delta", title: `a streamed piece of ${count(nDeltas)}, all at once, in process`, unit: "µs", better: "less" },
      { id: "delta.events", title: "… events the reader got of them", unit: "" },
      { id: "paced", title: "a streamed piece, one at a time, in process", unit: "µs", better: "less" },
      { id: "paced.events", title: "… events the reader got of them", unit: "" },
      { id: "sse", title: "a streamed piece from a provider over SSE", unit: "µs", better: "less" },
      { id: "sse.events", title: "… events the reader got of them", unit: "" },
    ],
  },
  checkpoint: {
    engines: ["lockgate"],
    full: { rounds: 1, nCalls: 20, forMs: 10_000, nShort: 500 },
    quick: { rounds: 1, nCalls: 20, forMs: 3_000, nShort: 200 },
    rows: ({ forMs }) => [
      { id: "checkpoint.cost", title: `checkpoints on files: processor time, of a call that streams for ${forMs / 1_000} s`, unit: "%" },
      { id: "checkpoint.short", title: "… a call that ends before the first, beside one without checkpoints", unit: "×" },
    ],
  },
  crowd: {
    engines: everyone,
    full: { rounds: 2, nCalls: 1_000 },
    quick: { rounds: 1, nCalls: 50 },
    rows: ({ nCalls }) => [
      { id: "apart.rate", title: `${count(nCalls)} calls at once, a session each`, unit: "/s", better: "more" },
      { id: "one.rate", title: `${count(nCalls)} calls at once, all on one session`, unit: "/s", better: "more" },
      { id: "one.refused", title: "… calls refused", unit: "" },
      { id: "one.lost", title: "… messages lost", unit: "" },
      { id: "one.torn", title: "… turns missing or mixed with others", unit: "" },
      { id: "one.blind", title: "… calls answered without any turn before them", unit: "" },
    ],
  },
  idle: {
    engines: everyone,
    full: { rounds: 1, nSessions: 10_000, forMs: 10_000 },
    quick: { rounds: 1, engines: light, nSessions: 500, forMs: 1_500 },
    rows: () => [
      { id: "idle.bytes", title: "memory of an idle session of 20 messages", unit: "B", better: "less" },
      { id: "idle.sessions", title: "… sessions it was measured with", unit: "" },
    ],
  },
  forget: {
    engines: ["lockgate"],
    full: { rounds: 1, few: 10_000, many: 100_000 },
    quick: { rounds: 1, few: 500, many: 5_000 },
    rows: ({ few, many }) => [
      { id: "forget.few", title: `memory after ${count(few)} sessions, the store forgets`, unit: "MB" },
      { id: "forget.many", title: `… after ${count(many)}`, unit: "MB" },
      { id: "forget.growth", title: "… growth", unit: "×" },
    ],
  },
  crash: {
    engines: ["lockgate"],
    full: { rounds: 1, nTraps: 1_000, nSessions: 50 },
    quick: { rounds: 1, nTraps: 50, nSessions: 50 },
    rows: ({ nTraps, nSessions }) => [
      { id: "crash.settled", title: `${count(nTraps)} crashes with ${nSessions} sessions open: until all calls are rejected, median`, unit: "ms" },
      { id: "crash.settled.slowest", title: "… the slowest", unit: "ms" },
      { id: "crash.next", title: "… until a new instance has answered the next call, median", unit: "ms" },
      { id: "crash.next.slowest", title: "… the slowest", unit: "ms" },
      { id: "crash.lost", title: "… accepted inputs lost", unit: "" },
    ],
  },
  reads: {
    engines: ["lockgate"],
    full: { rounds: 3, few: 100, many: 10_000, forMs: 1_000 },
    quick: { rounds: 1, few: 100, many: 10_000, forMs: 300 },
    rows: ({ few, many }) => [
      { id: "reads.few", title: `a model in JavaScript reads the last of ${count(few)} messages`, unit: "µs" },
      { id: "reads.many", title: `… the last of ${count(many)}`, unit: "µs" },
      { id: "reads.growth", title: "… growth", unit: "×" },
      { id: "reads.first", title: "… the first call of a new agent on them", unit: "µs" },
    ],
  },
  cold: {
    engines: everyone,
    full: { rounds: 5 },
    quick: { rounds: 1 },
    rows: () => [{ id: "cold", title: "from import to the first answer, new Node process", unit: "ms", better: "less" }],
  },
  edge: {
    // Mastra's bundle does not start in workerd: it needs `node:os`.
    engines: once.filter((name) => name !== "mastra"),
    full: { rounds: 3 },
    quick: { rounds: 1, engines: ["lockgate", "hand", "ai"] },
    rows: () => [
      { id: "edge", title: "from nothing to the first answer, new workerd", unit: "ms", better: "less" },
      { id: "edge.first", title: "… of it the first request", unit: "ms", better: "less" },
    ],
  },
  worker: {
    engines: ["lockgate"],
    full: { rounds: 3, nRequests: 2_000 },
    quick: { rounds: 1, nRequests: 200 },
    rows: () => [
      { id: "worker.first", title: "an agent in a Durable Object: from nothing to the first answer, new workerd", unit: "ms" },
      { id: "worker.cpu", title: "… CPU of a request without the model's time (the free plan allows 10 ms)", unit: "ms" },
      { id: "worker.bytes", title: "… what is deployed, gzip (the free plan allows 3 MB)", unit: "B" },
    ],
  },
  bundle: {
    // Mastra cannot be bundled for a page: it needs Node's modules.
    engines: once.filter((name) => name !== "mastra"),
    full: { rounds: 1 },
    quick: { rounds: 1, engines: ["lockgate", "hand", "ai"] },
    rows: () => [
      { id: "bundle", title: "what a page loads before it answers, brotli", unit: "B", better: "less" },
      { id: "bundle.raw", title: "… uncompressed", unit: "B", better: "less" },
      { id: "bundle.later", title: "… and then in the background, brotli", unit: "B", better: "less" },
    ],
  },
  chromium: {
    engines: ["lockgate", "hand", "ai"],
    full: { rounds: 1, lengths: [100, 10_000], forMs: 1_500, nSessions: 10_000, nMessages: 100_000 },
    quick: { rounds: 1, lengths: [100], forMs: 300, nSessions: 200, nMessages: 1_000 },
    rows: ({ lengths, nSessions, nMessages }) => [
      ...lengths.map((n) => ({ id: `page.call.${n}`, title: `in a page, time of a call on ${messages(n)}`, unit: "µs", better: "less" })),
      { id: "page.list.first", title: `in a page, the first 100 of ${count(nSessions)} sessions`, unit: "ms" },
      { id: "page.list.all", title: "… all of them, by pages", unit: "ms" },
      { id: "page.search", title: `in a page, a search of ${count(nMessages)} messages`, unit: "ms" },
      { id: "page.scan", title: "… a scan of the same log", unit: "ms" },
      { id: "page.search.gain", title: "… how many times the search is faster", unit: "×" },
      { id: "page.indexing", title: "… time to store and index them", unit: "ms" },
    ],
  },
  visit: {
    engines: ["lockgate"],
    full: { rounds: 3, nVisits: 7 },
    quick: { rounds: 1, nVisits: 3 },
    rows: () => [
      { id: "visit.usable", title: "the web UI, first visit: from navigation until one can write", unit: "ms" },
      { id: "visit.paint", title: "… until something is seen", unit: "ms" },
      { id: "visit.again", title: "… on the next visit, until one can write", unit: "ms" },
      { id: "visit.bare", title: "… a bare page with a field, beside it", unit: "ms" },
    ],
  },
};
