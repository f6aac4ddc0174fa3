// The tools, tool groups, skills and the subagent of this page's agent.
import { tool } from "lockgate";
import type { Skill, SubagentConfig, Tool, ToolGroup, WorkspaceFiles } from "lockgate";
import { askKeeper, countDown, picture, report } from "./demo-tools.ts";

export const toolGroups: readonly ToolGroup[] = [
  { name: "letters", description: "Letters to people", tools: ["send_letter"], active: true },
  { name: "device", description: "What this device is", tools: ["device"], active: false },
];

export const skills: readonly Skill[] = [
  {
    name: "letter-writing",
    description: "how letters are written here, before one is sent",
    content:
      "Begin with the reader's name. Say what you want in the first sentence. One thought a paragraph, no more than three. End with who you are.",
    resources: { "example.md": "Dear Ada,\n\nthe lock is open from eight.\n\nYours, the keeper" },
    toolGroups: ["letters"],
  },
  {
    name: "device-report",
    description: "how a problem with this device is described",
    content: "Ask the tool `device` first. Say what was expected, what happened, and on what.",
    toolGroups: ["device"],
  },
];

export const subagents: readonly SubagentConfig[] = [
  {
    name: "archivist",
    description: "finds out what was said in earlier sessions",
    systemPrompt: "You look through earlier sessions and answer with what was said, and where.",
    tools: ["session_list", "session_history", "session_search"],
  },
];

/** The tools. A page cannot send letters, so `send_letter` writes them into the user's files. */
export function toolsFor(files: () => WorkspaceFiles): readonly Tool[] {
  const sendLetter = tool<{ readonly text: string; readonly to?: string }>({
    name: "send_letter",
    description: "Puts a letter on this page's own pile, the folder outbox. A person approves it first.",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string" }, to: { type: "string" } },
      required: ["text"],
    },
    needsApproval: true,
    matches: (rule, { to }) => to === rule,
    execute: async ({ text, to = "someone" }, { userId, callId }) => {
      // Some stores have no files for the anonymous user. Then the letter is not written.
      const path = `outbox/${callId}.md`;
      await files().write(userId ?? null, path, `To ${to}\n\n${text}\n`).catch(() => {});
      return `the letter is on the pile: ${text}`;
    },
  });
  return [clock, add, device, alwaysFails, sendLetter, report, picture, countDown, askKeeper];
}

const clock = tool({
  name: "clock",
  description: "The time now, on this device.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    return { now: new Date().toISOString(), local: new Date().toLocaleString("en"), timeZone };
  },
});

const add = tool<{ readonly a: number; readonly b: number }>({
  name: "add",
  description: "The sum of two numbers.",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  readOnly: true,
  execute: ({ a, b }) => a + b,
});

const device = tool({
  name: "device",
  description: "Language, screen and browser of this device.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => ({
    languages: navigator.languages,
    screen: `${screen.width} × ${screen.height}`,
    online: navigator.onLine,
    browser: navigator.userAgent,
  }),
});

const alwaysFails = tool({
  name: "always_fails",
  description: "Throws whenever it is called, to show what a failing tool looks like.",
  inputSchema: { type: "object", properties: {} },
  readOnly: true,
  execute: () => {
    throw new Error("this tool always fails, on purpose");
  },
});
