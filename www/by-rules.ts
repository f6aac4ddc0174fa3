// Who takes notes for the demo model: by rules, in people's own words.
import { customModel, textOf } from "lockgate";
import type { Model } from "lockgate";

/** Notes what people say of themselves. */
export const noter: Model = customModel({
  id: "demo-notes",
  async *generate({ messages }) {
    const asked = textOf(messages.at(-1) ?? []);
    const [before = "", said] = asked.split("The conversation:");
    const notes = /<notes>\n([^]*)<\/notes>/.exec(before)?.[1] ?? "";
    if (said === undefined) return yield { type: "text", text: merged(notes) };
    const facts = said
      .split("\n")
      .filter((line) => /^Human: .*\b(I am|I'm|my name is|I like|I live|I prefer)\b/i.test(line))
      .map((line) => `- The user said: ${line.slice("Human: ".length)}`)
      .filter((fact) => !notes.includes(fact));
    yield { type: "text", text: facts.join("\n") || "NONE" };
  },
});

function merged(notes: string): string {
  return [...new Set(notes.split("\n").filter((line) => line.startsWith("- ")))].join("\n");
}
