// Every text of sessions and conversation that a person reads, in one place.
import type { Reason } from "lockgate";
import type { ToolPart } from "../part.ts";

const plural = (n: number, one: string, many: string) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const talk = {
  // Everywhere
  tryAgain: "Try again",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  copy: "Copy",
  copied: "Copied",
  notCopied: "Not allowed to copy",
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
  toEnd: "To the end",
  sending: "Sending",
  queued: (place: number) => (place > 0 ? `Queued, ${place} ahead` : "Queued"),
  takeBack: "Take back",
  waiting: "Waiting for the first word",
  thinking: "Thinking",
  thought: "Thought",
  answerFailed: "The answer failed",
  notSent: "Not sent",
  unanswered: "Not answered",
  goOn: "Go on",
  again: "Answer again",
  edit: "Edit",
  editQuestion: "Edit the question",
  askAgain: "Ask again",
  forkHere: "New session from here",
  branch: (at: number, of: number) => `${at}/${of}`,
  branchLabel: (at: number, of: number) => `Answer ${at} of ${of}`,
  earlier: "Earlier answer",
  later: "Later answer",
  retry: (attempt: number, code: string) => `Trying again, attempt ${attempt} (${code})`,
  fallback: (model: string) => `Asking ${model} instead`,
  summarising: "Summarising the older part",
  task: "task",
  answered: (text: string) => `Answer: ${text}`,

  // Summary
  summary: (n: number) => `${plural(n, "message is", "messages are")} summarised for the model`,
  showOriginals: "Show what was said",
  hideOriginals: "Hide it again",
  undoSummary: "Undo the summary",

  // Tools
  tool: (name: string) => `Tool ${name}`,
  input: "in",
  output: "out",
  evicted: (path: string) => `The model sees the beginning and the end. All of it is at ${path}.`,
  readWhole: (chars: number) => `Read the whole (${chars.toLocaleString("en")} characters)`,
  readLess: "Show less",
  hiddenChar: (code: string, name: string) => `${code}, ${name}: it is in the text, and would not be seen`,

  // Media
  remoteImage: (host: string) => `An image from ${host}. It is not loaded.`,
  openImage: "Open it in a new tab",
  file: (type: string, name: string) => `${type}: ${name}`,
  unnamed: "unnamed",
  attach: "Attach an image",
  detach: (name: string) => `Remove ${name}`,

  // Approvals
  asks: (name: string) => `May ${name} run?`,
  asksResult: (name: string) => `${name} waits for a result from outside`,
  changeInput: "Change the input",
  badJson: "This is not JSON",
  allowOnce: "Allow once",
  allowAlways: "Allow always",
  deny: "Deny",
  denyReason: "Why not? (the model reads it)",
  rule: (rule: string) => `“Always” is the rule ${rule} for this session.`,
  giveResult: "The result",
  handIn: "Hand it in",
  handInFailure: "It failed",
  framed: "This page is shown inside another: nothing can be approved here.",

  // The side
  tasks: "Tasks",
  noTasks: "No tasks. The model writes them down when a job has several steps.",
  taskStates: { pending: "to do", in_progress: "under way", completed: "done" },
  plan: "Plan",
  noPlan: "No plan yet.",
  planning: "Only planning: nothing is changed until the plan is approved.",

  // Composer
  message: "Message",
  say: "Say something",
  sayMore: "Say more; it waits its turn",
  stop: "Stop",
  stopHint: "Stop (Esc)",
  send: "Send",
  sendHint: "Send (Enter)",

  states: {
    writing: "being written",
    pending: "asked",
    asking: "asks you",
    allowed: "allowed",
    finished: "finished",
    running: "running",
    success: "done",
    error: "failed",
    denied: "denied",
    interrupted: "interrupted",
    suspended: "waits outside",
  } satisfies Record<ToolPart["state"], string>,

  endings: {
    stop: "",
    asking: "",
    suspended: "",
    interrupted: "Stopped",
    "max-iterations": "Stopped at the limit of steps",
    length: "Cut at the model’s length limit",
    middleware: "Stopped by a rule of this agent",
    empty: "The model answered nothing",
  } satisfies Record<Reason, string>,
} as const;
