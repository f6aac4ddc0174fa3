// Lists where Lockgate is not ahead, and why. Every reason was measured; the figures come from the current run.
import { engines } from "./engines/index.mjs";

const call =
  "A call of Lockgate with one tool does what the faster ones leave out: it stores the question before it asks the model, and the rest after it " +
  "(two commits of five records, after one look at the session and one at its log), makes sixteen events, and checks the tool's input against its schema. " +
  "This cost hardly grows with the history; the cost of the others grows with every message.";

const reasons = [
  { rows: ["call."], why: call },
  { rows: ["page.call."], why: `${call} In a page the two commits are two IndexedDB transactions, where the others have one read and one write.` },
  {
    rows: ["bytes."],
    why:
      "Besides the four messages Lockgate writes the session's head (its state without the messages, whole each time), the question once more until the call has ended, " +
      "and the line that lists the session. The engines that are ahead write only the messages, or have little to write again on a short history.",
  },
  {
    rows: ["delta", "paced", "sse"],
    why:
      "Each piece crosses from JavaScript into wasm and comes back as an event with its number, time and session. Pieces that the reader has not read yet become one event " +
      "(see the counts), so the cost is lowest where most pieces come at once, and highest where a reader takes every single one.",
  },
  {
    rows: ["apart.rate", "one.rate"],
    why: `${call} On one session Lockgate runs the calls one after another; the faster engines lose turns there, or answer without the earlier turns (see the counts).`,
  },
  {
    rows: ["idle.bytes"],
    why:
      "A session is kept as bytes in the store, and the thousand most recently used sessions are also in the engine's cache, which is counted here. The engines that are ahead keep one JSON text, or keep the session on disk.",
  },
  { rows: ["cold", "edge"], why: "The wasm file is compiled before the first call. A hand-written loop has nothing to load." },
  {
    rows: ["bundle"],
    why: "Most of it is the first part of the wasm: the engine, a store, and locks between tabs. The others load a loop and store nothing.",
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
  // Rows with the same reason are grouped, and the reason is given once.
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
