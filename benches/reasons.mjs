// Says where Lockgate is not ahead, and why. Every reason was measured; the figures beside it are those of the run.
import { engines } from "./engines/index.mjs";

const call =
  "A call of Lockgate with one tool does what the shorter ones leave out: it stores the question before it asks the model, and the rest after it " +
  "(two commits of five records, after one look at the session and one at its log), makes sixteen events, and checks the tool's input against its schema. " +
  "That is a fixed cost which hardly grows with the history; the others' grows with every message.";

const reasons = [
  { rows: ["call."], why: call },
  { rows: ["page.call."], why: `${call} In a page the two commits are two IndexedDB transactions, where the others have one read and one write.` },
  {
    rows: ["bytes."],
    why:
      "Besides the four messages Lockgate writes the session's head (its state without the messages, whole each time), the question once more until the call has ended, " +
      "and the line that lists the session. Who is ahead writes the messages alone, or, on a short history, has little to write again.",
  },
  {
    rows: ["delta", "paced", "sse"],
    why:
      "Each piece crosses from JavaScript into wasm and comes back as an event with its number, time and session. Pieces that nobody has read yet become one event " +
      "(see the counts), so the cost is lowest where most pieces come at once, and highest where a reader takes every single one.",
  },
  {
    rows: ["apart.rate", "one.rate"],
    why: `${call} On one session Lockgate runs the calls one after another; who is faster there loses turns or answers without knowing them (see the counts).`,
  },
  {
    rows: ["idle.bytes"],
    why:
      "A session is kept as bytes in the store, and the thousand that were used last also live in the engine, which is counted here. Who is ahead keeps one JSON text, or keeps it on disk.",
  },
  { rows: ["cold", "edge"], why: "The wasm file is compiled before the first call. A loop by hand has nothing to load." },
  {
    rows: ["bundle"],
    why: "The first part of the wasm is most of it: the engine, with a store and locks between tabs, where the others load a loop and keep nothing.",
  },
];

/** A line for every row in which someone is ahead of Lockgate. */
export function behind(results, rows, round) {
  const lines = rows.flatMap((row) => {
    const ahead = Object.keys(engines)
      .map((name) => ({ name, ratio: name === "lockgate" ? null : results.ratio(row, name) }))
      .filter(({ ratio }) => ratio !== null && ratio.value < 1);
    return ahead.length > 0 ? [{ row, ahead, why: whyOf(row) }] : [];
  });
  if (lines.length === 0) return "Nowhere in this run.";
  // Rows that are behind for one reason stand together, with the reason once.
  const whys = [...new Set(lines.map(({ why }) => why))];
  return whys
    .map((why) => [...lines.filter((line) => line.why === why).map((line) => said(line, round)), "", why].join("\n").trim())
    .join("\n\n");
}

const whyOf = ({ id }) => reasons.find(({ rows }) => rows.some((start) => id.startsWith(start)))?.why ?? "";

function said({ row, ahead }, round) {
  const who = ahead.map(({ name, ratio }) => `${engines[name].title} (${round(1 / ratio.value)} ×)`).join(", ");
  return `- ${row.title.replace(/^… /, "")}: ${who}`;
}
