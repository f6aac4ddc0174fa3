// A conversation as a person reads it.

import { textOf } from "./text.js";
import type { Block, Msg } from "./types.js";

/** A session as Markdown: who said what, and what tools were called. */
export function toMarkdown(title: string, messages: readonly Msg[]): string {
  const parts = messages.map(({ role, name, at, content }) => {
    const who = role === "tool" ? "Tool" : role === "assistant" ? "Assistant" : (name ?? "User");
    return `## ${who}\n\n${at}\n\n${content.map(section).filter((text) => text !== "").join("\n\n")}`;
  });
  return `# ${title === "" ? "Session" : title}\n\n${parts.join("\n\n")}\n`;
}

function section(block: Block): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "thinking":
      return quoted(block.thinking);
    case "tool_use":
      return `Calls \`${block.name}\`:\n\n${fenced(JSON.stringify(block.input, null, 2), "json")}`;
    case "tool_result":
      return `\`${block.name}\` (${block.state}):\n\n${fenced(textOf(block.output), "")}`;
    default:
      return "source" in block ? `[${block.type}${block.name === undefined ? "" : `: ${block.name}`}]` : "";
  }
}

function quoted(text: string): string {
  return text.split("\n").map((line) => `> ${line}`).join("\n");
}

/** A fence longer than any in the text. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
