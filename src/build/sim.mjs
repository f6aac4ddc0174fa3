// Runs the simulation: `npm run sim -- --seeds N`, or one schedule again: `npm run sim -- --replay SEED`.
import fs from "node:fs";
import os from "node:os";
import process from "node:process";
import { inRoot, main, problem, tee } from "./run.mjs";
import { prepare } from "./setup.mjs";

const usage =
  "Use it as `npm run sim -- --seeds 10000`, `--replay SEED` for one schedule, or `--record` to look for the deliberate bugs too and write tests/simulation/RESULTS.md.";

const story = "nothing_acknowledged_is_lost_doubled_or_reordered_whatever_goes_wrong";
const teeth = "every_deliberate_bug_of_the_engine_is_found_within_ten_thousand_seeds";

// `{ seeds }`, `{ replay }` or `{ seeds, record }`; numbers are whole.
function read(args) {
  const options = { seeds: 10_000, replay: null, record: false };
  for (let n = 0; n < args.length; n += 1) {
    if (args[n] === "--record") options.record = true;
    else if (args[n] === "--seeds") options.seeds = whole(args[(n += 1)]);
    else if (args[n] === "--replay") options.replay = whole(args[(n += 1)]);
    else throw problem(`${args[n]} is no option. ${usage}`);
  }
  return options;
}

function whole(text) {
  if (/^[0-9]+$/.test(text ?? "")) return Number(text);
  throw problem(`${text} is no whole number. ${usage}`);
}

async function run(cargo, name, env) {
  const args = ["test", "--profile", "fast", "--test", "simulation", name];
  const { code, stdout } = await tee(cargo, [...args, "--", "--nocapture"], { env });
  return { code, said: stdout.split("\n").map((line) => line.trimEnd()) };
}

// The lines from where `first` stands in one up to the one that is `last`, as they were printed.
function part(said, first, last) {
  const begin = said.findIndex((line) => line.includes(first));
  const end = said.findIndex((line, n) => n > begin && last(line));
  return [said[begin].slice(said[begin].indexOf(first)), ...said.slice(begin + 1, end)];
}

function results(seeds, story, teeth) {
  const cpu = os.cpus()[0]?.model ?? "unknown";
  const faults = part(story.said, "fault  ", (line) => line.includes(" schedules, "));
  const verdict = story.said.find((line) => line.includes(" schedules, "));
  const found = part(teeth.said, "mutant  ", (line) => line.endsWith("ok"));
  return `# What the simulation found

Made by \`npm run sim -- --seeds ${seeds} --record\` on ${os.cpus().length} × ${cpu}, Node ${process.versions.node}.
Every schedule follows from its number: \`npm run sim -- --replay NUMBER\` plays one again, on any machine.

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
  const found = await run(cargo, teeth, {});
  if (found.code !== 0) return found.code;
  fs.writeFileSync(inRoot("tests/simulation/RESULTS.md"), results(seeds, main, found));
  console.log("Written: tests/simulation/RESULTS.md");
  return 0;
});
