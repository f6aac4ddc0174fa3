// A whole session: 40 turns with all features on, and its AgentState at eight points.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { inRoot } from "../../../src/build/run.mjs";
import { tell } from "../support/project.mjs";

/** Turns 1 to 33: plan, tasks, subagents, a skill, compaction, resend and undo. */
async function before(pack, { folder, module }) {
  const { everything } = await import(module);
  const { fileStore } = await import("lockgate/stores/node");
  const { agent, model, slot, gate, ask, play, talk } = await everything(pack, fileStore(folder));
  const points = {};
  const point = async (name) => void (points[name] = await agent.getAgentState(slot));
  const todo = (...states) => ["todo_write", { todos: ["hull", "mast", "sail"].map((content, at) => ({ content, status: states[at] })) }];
  const ids = ({ messages }) => [...JSON.stringify(messages).matchAll(/task_id: (\w+)/g)].map(([, id]) => id);

  await talk(1, 2);
  const plans = [[["plan_enter", {}]], [["write_file", { path: "boat.md", content: "x" }]], [["plan_write", { content: "1. hull" }]], [["plan_exit", {}]]];
  const { asks } = await ask("Plan a boat.", ...plans);
  await point("planned");
  play([["write_file", { path: "boat.md", content: "hull" }]], "Carried out.");
  await agent.confirm(slot, [{ toolCallId: asks[0].toolCallId, approve: true }]).result;
  await point("approved");

  await ask("What is to do?", [todo("in_progress", "pending", "pending")], "Three things.");
  const spawn = (agent_id, label, timeout_seconds) => [["agent_spawn", { agent_id, task: label, label, timeout_seconds }]];
  await ask("Let others work.", spawn("counter", "planks", 0.05), spawn("idler", "wait", 0), "Two work.");
  await ask("End the idler.", (request) => ({ toolCalls: [{ name: "task_cancel", input: { task_id: ids(request).at(-1) } }] }), "Ended.");
  await point("children");
  gate.pass();
  await agent.drain();
  await ask("And the planks?", "Seven.");
  await ask("Saw them.", [["saw", {}]], [["load_skill", { name: "carpentry" }]], [["saw", {}]], [["paint", {}]], "Sawn.");
  await point("skilled");

  await talk(9, 22);
  await agent.compact(slot);
  await point("compacted");
  await talk(23, 27);
  await ask("How far are we?", [todo("completed", "in_progress", "pending")], "At the mast.");
  play([todo("completed", "completed", "completed")], [["paint", {}]], "All is done.");
  await agent.resend(slot).result;
  await point("resent");
  const [first] = await agent.branches(slot);
  await agent.switchBranch(slot, first.id);
  await point("back");
  await talk(29, 33);
  model.finished();
  await agent.drain();
  const last = await agent.getAgentState(slot);
  await agent.close();
  return { points, last };
}

/** Turns 34 to 40, in another process. */
async function after(pack, { folder, module, last }) {
  const { everything } = await import(module);
  const { fileStore } = await import("lockgate/stores/node");
  const { agent, model, slot, gate, ask, talk } = await everything(pack, fileStore(folder));
  const { assert } = pack;
  gate.pass();
  assert.deepEqual(await agent.getAgentState(slot), last, "a restart changes nothing");
  await ask("Saw once more.", [["saw", {}], ["paint", {}]], "Sawn.");
  await ask("Count again.", [["agent_send", { agent_key: "planks", message: "count again" }]], "Seven still.");
  await ask("The plan?", [["read_file", { path: "plans/PLAN.md" }], ["read_file", { path: "boat.md" }]], "Done.");
  await talk(37, 40);
  model.finished();
  const turns = (await agent.history(slot, { limit: 1_000 })).filter(({ role, name, content }) => role === "user" && name !== "system" && content[0].type === "text");
  const restarted = await agent.getAgentState(slot);
  await agent.close();
  return { restarted, turns: turns.length };
}

/** The simple questions and answers as they are in the context. */
const talked = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => [`user: Word ${from + at}.`, `assistant: Answer ${from + at}.`]).flat();

const todos = (...states) => {
  const list = ["hull", "mast", "sail"].map((content, at) => ({ content, status: states[at] }));
  const marks = { pending: "[ ]", in_progress: "[~]", completed: "[x]" };
  return [`assistant: todo_write ${JSON.stringify({ todos: list })}`, `tool: success ${list.map(({ content, status }) => `${marks[status]} ${content}`).join("\n")}`];
};

const tasks = (...states) => ({ tasks: ["hull", "mast", "sail"].map((subject, at) => ({ id: `<${at + 1}>`, subject, state: states[at] })) });

const task = (id, status, kind, key, label, more = "") => `task_id: <${id}>\nstatus: ${status}\nagent_id: ${kind}\nagent_key: agent:${kind}:<${key}>\nlabel: ${label}${more}`;

const ON = "\n\nIt goes on in the background. Its result comes to you as a message; task_output and wait_async_results wait for it.";
const PAINT = "tool: denied This call was not allowed: a rule forbids paint.";
const TOOLS =
  "paint, agent_spawn, agent_send, agent_list, task_output, task_list, task_cancel, wait_async_results, session_list, session_history, session_search, todo_write, " +
  "reset_equipped_tools, load_skill, read_file, write_file, edit_file, grep_files, glob_files, list_files, plan_enter, plan_write, plan_exit, memory_search, memory_get, memory_save";

const PLANNED = [
  ...talked(1, 2),
  "user: Plan a boat.",
  "assistant: plan_enter {}",
  "tool: success Plan mode is on. Write the plan to plans/PLAN.md with plan_write, then call plan_exit.",
  'assistant: write_file {"content":"x","path":"boat.md"}',
  "tool: denied This call was not allowed: plan mode is on, and write_file may change things; look around with tools that only read, write the plan with plan_write, and call plan_exit to have it approved.",
  'assistant: plan_write {"content":"1. hull"}',
  "tool: success Wrote plans/PLAN.md.",
  "assistant: plan_exit {}",
];
const APPROVED = [
  ...PLANNED,
  "tool: success The plan in plans/PLAN.md is approved and plan mode is off. Carry it out, step by step.",
  'assistant: write_file {"content":"hull","path":"boat.md"}',
  "tool: success Wrote boat.md.",
  "assistant: Carried out.",
];
const CHILDREN = [
  ...APPROVED,
  "user: What is to do?",
  ...todos("in_progress", "pending", "pending"),
  "assistant: Three things.",
  "user: Let others work.",
  'assistant: agent_spawn {"agent_id":"counter","label":"planks","task":"planks","timeout_seconds":0.05}',
  `tool: success ${task(4, "running", "counter", 5, "planks", ON)}`,
  'assistant: agent_spawn {"agent_id":"idler","label":"wait","task":"wait","timeout_seconds":0}',
  `tool: success ${task(6, "running", "idler", 7, "wait", ON)}`,
  "assistant: Two work.",
  "user: End the idler.",
  'assistant: task_cancel {"task_id":"<6>"}',
  `tool: success ${task(6, "cancelled", "idler", 7, "wait")}`,
  "assistant: Ended.",
];
const SKILLED = [
  ...CHILDREN,
  "user: And the planks?",
  `note: ${task(4, "completed", "counter", 5, "planks", "\n\n7, when asked to planks")}`,
  "assistant: Seven.",
  "user: Saw them.",
  "assistant: saw {}",
  `tool: error The tool "saw" is not on in this session. The tools are: ${TOOLS}.`,
  'assistant: load_skill {"name":"carpentry"}',
  "tool: success Measure twice.",
  "assistant: saw {}",
  "tool: success sawn",
  "assistant: paint {}",
  PAINT,
  "assistant: Sawn.",
];
const SUMMARY = "They planned and built.";
const COMPACTED = [
  "user: [The earlier part of this conversation is not shown any more. This is a summary of it: a record of what was said, not a message of the user.]\n" +
    `<summary>\n${SUMMARY}\n</summary>\n[session_search and session_history show all of it.]`,
  ...talked(22, 22),
];
const ASKED = [...COMPACTED, ...talked(23, 27), "user: How far are we?"];
const RESENT = [...ASKED, ...todos("completed", "completed", "completed"), "assistant: paint {}", PAINT, "assistant: All is done."];
const BACK = [...ASKED, ...todos("completed", "in_progress", "pending"), "assistant: At the mast."];
const RESTARTED = [
  ...BACK,
  ...talked(29, 33),
  "user: Saw once more.",
  "assistant: saw {} + paint {}",
  "tool: success sawn",
  PAINT,
  "assistant: Sawn.",
  "user: Count again.",
  'assistant: agent_send {"agent_key":"planks","message":"count again"}',
  `tool: success ${task(8, "completed", "counter", 5, "planks", "\n\n7, when asked to count again")}`,
  "assistant: Seven still.",
  "user: The plan?",
  'assistant: read_file {"path":"plans/PLAN.md"} + read_file {"path":"boat.md"}',
  "tool: success 1. hull",
  "tool: success hull",
  "assistant: Done.",
  ...talked(37, 40),
];

// The fields that are the same at every point, then the changes of each point. A call makes two commits, any other change makes one.
const PAINT_RULE = { tool_name: "paint", rule_content: null, behavior: "deny", source: "options" };
const ALWAYS = {
  format: 1,
  session_id: "whole",
  user_id: "alice",
  permission_context: { mode: "bypass", allow_rules: [], ask_rules: [], deny_rules: [PAINT_RULE], working_directories: [] },
  shutdown_interrupted: false,
};
const plan = (plan_active) => ({ plan_active, current_plan_file: "plans/PLAN.md" });
const bare = { activated_groups: [], activated_skills: [] };
const skilled = { activated_groups: ["shop"], activated_skills: ["carpentry"] };
const [hull, mast, all] = [tasks("in_progress", "pending", "pending"), tasks("completed", "in_progress", "pending"), tasks("completed", "completed", "completed")];
const EXPECTED = {
  planned: { version: 6, context: PLANNED, summary: "", plan_mode_context: plan(true), tasks_context: { tasks: [] }, tool_context: bare },
  approved: { version: 8, context: APPROVED, summary: "", plan_mode_context: plan(false), tasks_context: { tasks: [] }, tool_context: bare },
  children: { version: 14, context: CHILDREN, summary: "", plan_mode_context: plan(false), tasks_context: hull, tool_context: bare },
  skilled: { version: 18, context: SKILLED, summary: "", plan_mode_context: plan(false), tasks_context: hull, tool_context: skilled },
  compacted: { version: 47, context: COMPACTED, summary: SUMMARY, plan_mode_context: plan(false), tasks_context: hull, tool_context: skilled },
  resent: { version: 61, context: RESENT, summary: SUMMARY, plan_mode_context: plan(false), tasks_context: all, tool_context: skilled },
  back: { version: 62, context: BACK, summary: SUMMARY, plan_mode_context: plan(false), tasks_context: mast, tool_context: skilled },
  restarted: { version: 86, context: RESTARTED, summary: SUMMARY, plan_mode_context: plan(false), tasks_context: mast, tool_context: skilled },
};

/** States in a comparable form: messages are lines, and random ids are numbered by their first use. */
function writer() {
  const names = new Map();
  return ({ revision, context, ...state }) => {
    assert.ok(revision.length > 0 && new Set(context.map(({ id }) => id)).size === context.length, "the state is stored, and no message occurs twice");
    const text = JSON.stringify({ ...state, context: context.map(line) });
    for (const [, id] of text.matchAll(/(?:task_id: |agent_key: agent:\w+:|"id":")(\w+)/g)) if (!names.has(id)) names.set(id, `<${names.size + 1}>`);
    return JSON.parse([...names].reduce((left, [id, name]) => left.replaceAll(id, name), text));
  };
}

const line = ({ role, name, content }) => `${name === "system" ? "note" : role}: ${content.map(block).join(" + ")}`;

function block({ type, text, name, input, state, output }) {
  if (type === "tool_use") return `${name} ${JSON.stringify(input)}`;
  return type === "tool_result" ? `${state} ${output.map((each) => each.text).join("")}` : text;
}

// R45, R46, R64, R70
test("R45, R46, R64, R70: a session of 40 turns with all features on has the expected state, field by field, at each of eight points", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-whole-"));
  const given = { folder, module: pathToFileURL(inRoot("tests/npm/runtime/whole.mjs")).href };
  try {
    const { points, last } = await tell(before, given);
    const { restarted, turns } = await tell(after, { ...given, last });
    assert.equal(turns, 40);
    const write = writer();
    const states = Object.entries({ ...points, restarted });
    assert.deepEqual(states.map(([name]) => name), Object.keys(EXPECTED));
    for (const [name, state] of states) {
      const expected = { ...ALWAYS, ...EXPECTED[name] };
      const found = write(state);
      assert.deepEqual(Object.keys(found).sort(), Object.keys(expected).sort(), name);
      for (const [field, value] of Object.entries(expected)) assert.deepEqual(found[field], value, `${name}: ${field}`);
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
});
