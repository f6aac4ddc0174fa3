// Exports a session as Markdown.

import { textOf } from "../values/text.js";
import type { Block, Msg } from "../types.js";

/** A session as Markdown: a section for each message. */
export function toMarkdown(title: string, messages: readonly Msg[]): string {
  const parts = messages.map(({ role, name, at, content, turn, turnError }) => {
    const who = role === "tool" ? "Tool" : role === "assistant" ? "Assistant" : (name ?? "User");
    // A turn that is open now is interrupted for those who read the document later.
    const state = turn === undefined ? "" : ` (${turn === "failed" ? `failed: ${turnError?.message ?? ""}` : "interrupted"})`;
    return `## ${who}\n\n${at}${state}\n\n${content.map(section).filter((text) => text !== "").join("\n\n")}`;
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

/** A code block whose fence is longer than any fence in the text. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
