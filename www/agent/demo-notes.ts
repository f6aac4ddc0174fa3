// Takes notes for the demo model, by rules.
import { textOf } from "lockgate";
import type { Msg } from "lockgate";

/** New notes from what users say about themselves. Without a conversation in the request: the notes without duplicates. */
export function notesOf(messages: readonly Msg[]): string {
  const asked = textOf(messages.at(-1) ?? []);
  const [before = "", said] = asked.split("The conversation:");
  const notes = /<notes>\n([^]*)<\/notes>/.exec(before)?.[1] ?? "";
  if (said === undefined) return merged(notes);
  const facts = said
    .split("\n")
    .filter((line) => /^Human: .*\b(I am|I'm|my name is|I like|I live|I prefer)\b/i.test(line))
    .map((line) => `- The user said: ${line.slice("Human: ".length)}`)
    .filter((fact) => !notes.includes(fact));
  return facts.join("\n") || "NONE";
}

function merged(notes: string): string {
  return [...new Set(notes.split("\n").filter((line) => line.startsWith("- ")))].join("\n");
}
