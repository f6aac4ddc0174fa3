// What the demo needs beside its model: somebody who summarises and somebody who takes notes, both by rules.
import { customModel, textOf } from "lockgate";
import type { Model } from "lockgate";

/** Keeps the first words of everything that was said, which is what rules can do. */
export const summariser: Model = customModel({
  id: "demo-summary",
  async *generate({ messages }) {
    const said = behind(textOf(messages.at(-1) ?? []), "The conversation:");
    const lines = said.split("\n").filter((line) => /^(Human|AI|AI calls|Tool)\b.*:/.test(line));
    const questions = lines.filter((line) => line.startsWith("Human:")).map(short);
    const tools = lines.filter((line) => line.startsWith("Tool ")).map(short);
    const earlier = /## SUMMARY\n([^]*?)\n\n##/.exec(said)?.[1] ?? "";
    yield {
      type: "text",
      text: [
        `## SESSION INTENT\n${questions.at(0) ?? "None"}`,
        `## SUMMARY\n${[earlier, ...questions].filter(Boolean).join("\n") || "None"}`,
        `## ARTIFACTS\n${tools.join("\n") || "None"}`,
        "## NEXT STEPS\nNone",
      ].join("\n\n"),
    };
  },
});

/** Notes what people say of themselves, in their own words. */
export const noter: Model = customModel({
  id: "demo-notes",
  async *generate({ messages }) {
    const asked = textOf(messages.at(-1) ?? []);
    const notes = /<notes>\n([^]*)<\/notes>/.exec(asked)?.[1] ?? "";
    if (!asked.includes("The conversation:")) return yield { type: "text", text: merged(notes) };
    const said = behind(asked, "The conversation:").split("\n");
    const facts = said
      .filter((line) => /^Human: .*\b(I am|I'm|my name is|I like|I live|I prefer)\b/i.test(line))
      .map((line) => `- The user said: ${line.slice("Human: ".length)}`)
      .filter((fact) => !notes.includes(fact));
    yield { type: "text", text: facts.join("\n") || "NONE" };
  },
});

function behind(text: string, mark: string): string {
  return text.slice(Math.max(text.indexOf(mark), 0));
}

function short(line: string): string {
  const words = line.replace(/^\w+: /, "").slice(0, 160);
  return `- ${words}`;
}

function merged(notes: string): string {
  return [...new Set(notes.split("\n").filter((line) => line.startsWith("- ")))].join("\n");
}
