// Runs the simulation: `npm run sim -- --seeds N`. Repeats one schedule: `npm run sim -- --replay SEED`.
import fs from "node:fs";
import os from "node:os";
import process from "node:process";
import { inRoot, main, problem, tee } from "./run.mjs";
import { prepare } from "./setup/setup.mjs";

const usage =
  "Use it as `npm run sim -- --seeds 10000`, `--replay SEED` for one schedule, or `--record` to look for the deliberate bugs too and write tests/simulation/RESULTS.md.";

const story = "no_fault_loses_doubles_or_reorders_an_acknowledged_turn";
const bugs = "every_deliberate_bug_of_the_engine_is_found_within_ten_thousand_seeds";

// `{ seeds }`, `{ replay }` or `{ seeds, record }`; numbers are whole.
function read(args) {
  const options = { seeds: 10_000, replay: null, record: false };
  for (let n = 0; n < args.length; n += 1) {
    if (args[n] === "--record") options.record = true;
    else if (args[n] === "--seeds") options.seeds = wholeNumber(args[(n += 1)]);
    else if (args[n] === "--replay") options.replay = wholeNumber(args[(n += 1)]);
    else throw problem(`${args[n]} is not an option. ${usage}`);
  }
  return options;
}

function wholeNumber(text) {
  if (/^[0-9]+$/.test(text ?? "")) return Number(text);
  throw problem(`${text} is not a whole number. ${usage}`);
}

async function run(cargo, name, env) {
  const args = ["test", "--profile", "fast", "--test", "simulation", name];
  const { code, stdout } = await tee(cargo, [...args, "--", "--nocapture"], { env });
  return { code, lines: stdout.split("\n").map((line) => line.trimEnd()) };
}

// The printed lines from the line with `first` up to the line for which `last` is true.
function part(lines, first, last) {
  const begin = lines.findIndex((line) => line.includes(first));
  const end = lines.findIndex((line, n) => n > begin && last(line));
  return [lines[begin].slice(lines[begin].indexOf(first)), ...lines.slice(begin + 1, end)];
}

function results(seeds, story, bugs) {
  const cpu = os.cpus()[0]?.model ?? "unknown";
  const faults = part(story.lines, "fault  ", (line) => line.includes(" schedules, "));
  const verdict = story.lines.find((line) => line.includes(" schedules, "));
  const found = part(bugs.lines, "mutant  ", (line) => line.endsWith("ok"));
  return `# What the simulation found

Made by \`npm run sim -- --seeds ${seeds} --record\` on ${os.cpus().length} × ${cpu}, Node ${process.versions.node}.
A schedule is determined by its number: \`npm run sim -- --replay NUMBER\` repeats it on any machine.

${verdict.trim()}.

\`\`\`
${faults.join("\n")}
\`\`\`

Deliberate bugs of the engine, one at a time, and after how many schedules each was found:

\`\`\`
${found.map((line) => line.replace(/(: |, and what was seen).*/, "")).join("\n")}
\`\`\`
`;
}

await main(import.meta.url, async (args) => {
  const { seeds, replay, record } = read(args);
  const { cargo } = await prepare(["rust"], { quiet: true });
  const env = replay === null ? { SCHEDULES: String(seeds) } : { LOCKGATE_SEED: String(replay) };
  const main = await run(cargo, story, env);
  if (!record || main.code !== 0) return main.code;
  const found = await run(cargo, bugs, {});
  if (found.code !== 0) return found.code;
  fs.writeFileSync(inRoot("tests/simulation/RESULTS.md"), results(seeds, main, found));
  console.log("Written: tests/simulation/RESULTS.md");
  return 0;
});
