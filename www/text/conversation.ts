// The texts of turns, and others that load with them, after the page is shown.
import type { Reason } from "lockgate";
import type { ToolPart } from "../session/part.ts";
import { plural } from "./plural.ts";

export const said = {
  // Everywhere
  cancel: "Cancel",
  copy: "Copy",
  copied: "Copied",
  notCopied: "Not allowed to copy",

  // Turns
  toEnd: "To the end",
  sending: "Sending",
  queued: (place: number) => (place > 0 ? `Queued, ${place} ahead` : "Queued"),
  takeBack: "Take back",
  waiting: "Waiting for the first word",
  thinking: "Thinking",
  thought: "Thought",
  answerFailed: "The answer failed",
  notSent: "Not sent",
  cutOff: "Interrupted",
  goOn: "Continue",
  again: "Answer again",
  edit: "Edit",
  editQuestion: "Edit the question",
  askAgain: "Ask again",
  forkHere: "New session from here",
  branch: (at: number, of: number) => `${at}/${of}`,
  branchLabel: (at: number, of: number) => `Answer ${at} of ${of}`,
  earlier: "Earlier answer",
  later: "Later answer",
  task: "task",
  answered: (text: string) => `Answer: ${text}`,

  // Deleted and dropped things
  removed: (title: string) => `Deleted “${title}”`,
  undo: "Undo",
  dismiss: "Dismiss",
  dropHere: "Drop it to import the session",

  // Search
  searching: "Searching",
  found: (n: number) => (n ? plural(n, "place found", "places found") : "Nothing found"),
  hitBy: { user: "You", assistant: "Answer", tool: "Tool", system: "Note" },

  // A new title
  newTitle: "Title",
  save: "Save",

  // A session that is not there
  lostHere: (store: string) =>
    `It was deleted, or it belongs to another user, another browser or another storage than ${store}.`,
  lostAt: (host: string) => `It was deleted, or it belongs to another visitor of ${host}.`,

  // Summary
  summary: (n: number) => `${plural(n, "message is", "messages are")} summarised for the model`,
  leftOut: (n: number) => `${plural(n, "message does", "messages do")} not fit and ${n === 1 ? "is" : "are"} left out for the model`,
  showOriginals: "Show what was said",
  hideOriginals: "Hide it again",
  undoSummary: "Undo the summary",
  undoLeftOut: "Show them to the model again",

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
