// The texts of sessions and the composer. The texts of turns are in conversation.ts.
import { plural } from "./plural.ts";

export const talk = {
  // Everywhere
  tryAgain: "Try again",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
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
  newTitle: "Title",
  fork: "Copy as a new session",
  exportAs: { lockgate: "Export as JSON", agentscope: "Export as AgentScope JSON", markdown: "Export as Markdown" },
  remove: "Delete",
  removed: (title: string) => `Deleted “${title}”`,
  undo: "Undo",
  importFile: "Import a session",
  dropHere: "Drop it to import the session",
  dismiss: "Dismiss",

  // Search
  search: "Search all sessions",
  clearSearch: "Clear the search",
  searching: "Searching",
  found: (n: number) => (n ? plural(n, "place found", "places found") : "Nothing found"),
  hitBy: { user: "You", assistant: "Answer", tool: "Tool", system: "Note" },

  // Users
  user: "User",
  anonymous: "Anonymous",
  addUser: "Another user…",
  userName: "Name of the user",
  useUser: "Switch",

  // The keys
  keys: [
    ["n", "new"],
    ["/", "search"],
    ["↑↓", "move"],
    ["Enter", "open"],
    ["Del", "delete"],
    ["Esc", "stop"],
    ["r", "again"],
    ["e", "edit"],
    ["i", "inside"],
  ],

  // Welcome
  welcome: "One gate, one boat at a time.",
  about:
    "Lockgate is an agent engine that runs whole in this page, and every session is kept in this browser. A small offline demo model answers here, so nothing you write leaves your device.",
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
  retry: (attempt: number, code: string) => `Trying again, attempt ${attempt} (${code})`,
  fallback: (model: string) => `Asking ${model} instead`,
  summarising: "Summarising the older part",

  // Media
  unnamed: "unnamed",
  attach: "Attach an image",
  detach: (name: string) => `Remove ${name}`,

  // Composer
  message: "Message",
  say: "Say something",
  sayMore: "Say more; it waits its turn",
  stop: "Stop",
  stopHint: "Stop (Esc)",
  send: "Send",
  sendHint: "Send (Enter)",
} as const;
