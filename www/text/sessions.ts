// The texts of sessions and the composer. The texts of turns are in conversation.ts.
import { plural } from "./plural.ts";

export const talk = {
  // Everywhere
  tryAgain: "Try again",
  close: "Close",
  more: (what: string) => `More about ${what}`,

  // Sessions
  sessions: "Sessions",
  newSession: "New session",
  nothingSaid: "nothing said yet",
  showSessions: "Show sessions",
  running: "running",
  asking: "asks you",
  branches: (n: number) => plural(n, "branch", "branches"),
  rename: "Rename",
  fork: "Copy as a new session",
  exportAs: { lockgate: "Export as JSON", agentscope: "Export as AgentScope JSON", markdown: "Export as Markdown" },
  remove: "Delete",
  importFile: "Import a session",

  // Search
  search: "Search all sessions",
  clearSearch: "Clear the search",

  // Users
  user: "User",
  anonymous: "Anonymous",
  addUser: "Another user…",
  userName: "Name of the user",
  useUser: "Switch",

  // The keys. The letters work in the list and in the panel.
  keys: [
    ["n", "new"],
    ["/", "search"],
    ["↑↓", "move"],
    ["Enter", "open"],
    ["Del", "delete"],
    ["i", "inside"],
    ["Esc", "stop, or to this list"],
  ],

  // Welcome
  welcome: "One gate, one boat at a time.",
  examples: [
    "What time is it?",
    "Send a letter to Ada",
    "Work through your tasks",
    "Make a plan",
    "Write a long report",
    "Help",
  ],

  // Conversation
  conversation: "Conversation",
  reading: "Reading what was said",
  unreadable: "This session could not be read",
  lost: "There is no such session",
  retry: (attempt: number) => `That failed. Trying again, attempt ${attempt}`,
  fallback: (model: string) => `Asking ${model} instead`,
  summarising: "Summarising the older part",

  // Media
  unnamed: "unnamed",
  attach: "Attach an image",
  detach: (name: string) => `Remove ${name}`,

  // Composer
  keyless: (host: string) => `The key for ${host} was not kept in this browser.`,
  toSettings: "Settings",
  message: "Message",
  say: "Say something",
  sayMore: "Say more; it waits its turn",
  stop: "Stop",
  stopHint: "Stop (Esc)",
  send: "Send",
  sendHint: "Send (Enter)",
} as const;
