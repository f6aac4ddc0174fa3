// Shows the results: a table on the screen, and RESULTS.md with its plot.
import fs from "node:fs";
import os from "node:os";
import { engines } from "./engines/index.mjs";
import { measures } from "./measures/index.mjs";
import { plot } from "./plot.mjs";
import { behind } from "./reasons.mjs";

const inBenches = (name) => new URL(name, import.meta.url);
const names = Object.keys(engines);
const peers = names.filter((name) => name !== "lockgate");

function found(results, mode) {
  return Object.entries(measures).flatMap(([what, measure]) => {
    const { engines: measured = measure.engines } = measure[mode];
    const rows = measure.rows(measure[mode]).filter(({ id }) => results.has(id));
    return rows.map((row) => ({ ...row, what, measured }));
  });
}

/** `mode` is `full` or `quick`. */
export function printTable(results, mode) {
  const short = { hand: "by hand", ai: "AI SDK", langgraph: "LangGraph", "langgraph-sqlite": "LG SQLite", openai: "OpenAI", mastra: "Mastra", pi: "pi" };
  const line = (cells) => console.log(cells.map((cell, at) => (at === 0 ? cell.padEnd(52) : cell.padStart(11))).join(""));
  console.log("\nHow many times Lockgate is ahead (below 1: behind). The second column is Lockgate itself; counts stand as they are.\n");
  line(["", "Lockgate", ...peers.map((name) => short[name])]);
  for (const row of found(results, mode)) line([row.title, own(results, row), ...peers.map((name) => beside(results, row, name))]);
  for (const { what, name, problem } of results.failures) console.log(`failed: ${what} of ${name}: ${problem}`);
  console.log();
}

const own = (results, row) => shown(results.figure(row.id, "lockgate"), row.unit);

// The ratio where there is one, else the count.
function beside(results, row, name) {
  if (!row.measured.includes(name)) return "";
  if (results.failures.some((one) => one.what === row.what && one.name === name)) return "failed";
  const ratio = results.ratio(row, name);
  if (ratio) return `${round(ratio.value)} ×`;
  return shown(results.figure(row.id, name), row.unit);
}

const shown = (figure, unit) => (figure ? `${round(figure.value)} ${unit}`.trim() : "");

/** At most three significant digits. */
function round(value) {
  if (!Number.isFinite(value)) return "-";
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return value.toPrecision(Math.abs(value) < 0.1 ? 1 : 2 + (Math.abs(value) >= 10));
}

/** Writes the results of a full run; `seconds` is its duration, `load` the load of the machine before it. */
export function writeReport(results, { seconds, load }) {
  fs.writeFileSync(inBenches("results.svg"), plot(results));
  fs.writeFileSync(inBenches("RESULTS.md"), text(results, { seconds, load }));
  console.log("benches/RESULTS.md and benches/results.svg are written");
}

function text(results, run) {
  const rows = found(results, "full");
  return `${[
    "# What it costs, beside the alternatives",
    "Made by `npm run bench`; do not edit. Another run gives other absolute figures, but nearly the same ratios.",
    conditions(run),
    busy(run),
    "![time of a call by the length of the history](results.svg)",
    "## How many times Lockgate is ahead",
    "A peer's cost divided by Lockgate's, or Lockgate's rate divided by the peer's: the median of the rounds' own ratios. Below 1 Lockgate is behind. Counts stand as they are.",
    ratioTable(results, rows),
    failed(results),
    "## Where Lockgate is not ahead",
    behind(results, rows, round),
    "## The figures",
    "The median of the rounds, and in brackets the least and the most. The command beside a table makes it again.",
    ...Object.keys(measures).map((what) => figures(results, what, rows.filter((row) => row.what === what))),
    fs.readFileSync(inBenches("how.md"), "utf8").trim(),
  ]
    .filter(Boolean)
    .join("\n\n")}\n`;
}

function conditions({ seconds, load }) {
  const [cpu] = os.cpus();
  const machine = `${os.cpus().length} × ${cpu?.model.trim() ?? "an unknown processor"}, ${Math.round(os.totalmem() / 2 ** 30)} GB, ${os.type()} ${os.release()}`;
  const versions = names.flatMap((name) => engines[name].packages ?? []).map((name) => `${name} ${installed(name)}`);
  return [
    `- ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC, ${Math.round(seconds)} s, load before it ${load.toFixed(1)}`,
    `- ${machine}; Node ${process.versions.node}`,
    `- ${versions.join(", ")}`,
  ].join("\n");
}

// On an idle machine, a run alone causes about as much load as it has processes at once.
function busy({ load }) {
  const after = os.loadavg()[2];
  if (load < 0.7 && after < 2.5) return null;
  return `**The machine had other work meanwhile** (load ${load.toFixed(1)} before, ${after.toFixed(1)} over the last 15 minutes): only the ratios are meaningful; run it again on an idle machine.`;
}

const installed = (name) => JSON.parse(fs.readFileSync(inBenches(`node_modules/${name}/package.json`), "utf8")).version;

function table(head, lines) {
  return [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function ratioTable(results, rows) {
  const head = ["", "Lockgate", ...peers.map((name) => engines[name].title)];
  return table(head, rows.map((row) => [row.title, own(results, row), ...peers.map((name) => beside(results, row, name))]));
}

function figures(results, what, rows) {
  if (rows.length === 0) return null;
  const measured = names.filter((name) => measures[what].engines.includes(name));
  const cell = (row, name) => {
    const figure = results.figure(row.id, name);
    if (!figure) return beside(results, row, name);
    const spread = figure.least === figure.most ? "" : ` [${round(figure.least)} – ${round(figure.most)}]`;
    return `${round(figure.value)}${spread}`;
  };
  const head = ["", ...measured.map((name) => engines[name].title)];
  const lines = rows.map((row) => [`${row.title}${row.unit ? `, ${row.unit}` : ""}`, ...measured.map((name) => cell(row, name))]);
  return `\`npm run bench -- --only ${what}\`\n\n${table(head, lines)}`;
}

function failed({ failures }) {
  if (failures.length === 0) return null;
  return ["Not measured, because it failed:", ...failures.map(({ what, name, problem }) => `- ${what}, ${engines[name].title}: ${problem}`)].join("\n");
}

