// What a remote agent sends for each method of the table: verb, address and body.
import assert from "node:assert/strict";
import { test } from "node:test";
import { packedModule } from "../support/project.mjs";

const slot = { userId: "alice", sessionId: "a/b" };
const context = { mode: "default", allow_rules: [], ask_rules: [], deny_rules: [], working_directories: [] };

/** A method and its arguments, and the request that they become. */
const REQUESTS = [
  ["listSessions", ["alice", { after: "c", limit: 2 }], "GET sessions?after=c&limit=2"],
  ["listSessions", [null], "GET sessions"],
  ["session", [slot], "GET sessions/a%2Fb"],
  ["renameSession", [slot, "new"], "PATCH sessions/a%2Fb", { title: "new" }],
  ["deleteSession", [slot], "DELETE sessions/a%2Fb"],
  ["history", [slot, { before: "m", limit: 3, branch: "b" }], "GET sessions/a%2Fb/history?before=m&limit=3&branch=b"],
  ["asks", [slot], "GET sessions/a%2Fb/asks"],
  ["append", [slot, [{ role: "user", content: "hi" }]], "POST sessions/a%2Fb/append", { messages: [{ role: "user", content: "hi" }] }],
  ["interrupt", [slot, "wait"], "POST sessions/a%2Fb/interrupt", { message: "wait" }],
  ["interrupt", [slot], "POST sessions/a%2Fb/interrupt", {}],
  ["getAgentState", [slot], "GET sessions/a%2Fb/state"],
  ["putAgentState", [slot, { revision: "1" }], "PUT sessions/a%2Fb/state", { state: { revision: "1" } }],
  ["clearContext", [slot], "POST sessions/a%2Fb/clear", {}],
  ["compact", [slot], "POST sessions/a%2Fb/compact", {}],
  ["undoCompaction", [slot], "POST sessions/a%2Fb/undo-compaction", {}],
  ["setPermissionMode", [slot, "explore"], "PUT sessions/a%2Fb/permission-mode", { mode: "explore" }],
  ["replacePermissions", [slot, context], "PUT sessions/a%2Fb/permissions", { context }],
  ["enterPlanMode", [slot], "POST sessions/a%2Fb/plan", {}],
  ["exitPlanMode", [slot], "DELETE sessions/a%2Fb/plan"],
  ["branches", [slot], "GET sessions/a%2Fb/branches"],
  ["switchBranch", [slot, "b"], "PUT sessions/a%2Fb/branch", { branch: "b" }],
  ["fork", [slot, { userId: "alice", sessionId: "c" }, { upTo: "m" }], "POST sessions/a%2Fb/fork", { to: "c", upTo: "m" }],
  ["fork", [slot, { userId: "alice", sessionId: "c" }], "POST sessions/a%2Fb/fork", { to: "c" }],
  ["inspect", [slot], "GET sessions/a%2Fb/inspect"],
  ["repairSession", [slot], "POST sessions/a%2Fb/repair", {}],
  ["exportSession", [slot, "markdown"], "GET sessions/a%2Fb/export?format=markdown"],
  ["importSession", [slot, "{}"], "POST sessions/a%2Fb/import", { text: "{}" }],
  ["search", ["two words", { userId: "alice", sessionId: "s", limit: 5 }], "GET search?query=two+words&sessionId=s&limit=5"],
  ["deleteUser", ["alice"], "DELETE user"],
  ["tools", [slot], "GET tools?sessionId=a%2Fb"],
  ["tools", [], "GET tools"],
  ["storage", [], "GET storage"],
  ["files.list", ["alice", "notes"], "GET files?path=notes"],
  ["files.read", ["alice", "a.md"], "GET file?path=a.md"],
  ["files.write", ["alice", "a.md", "text"], "PUT file", { path: "a.md", text: "text" }],
  ["files.delete", ["alice", "a.md"], "DELETE file?path=a.md"],
];

/** Members of an agent that are not methods of the table. */
const OTHERS = ["name", "files", "call", "stream", "confirm", "resume", "resend", "attach", "subscribe", "exportUser", "listUsers", "shutdown", "drain", "close"];

test("each method has its own verb and address, and is sent with named arguments and without a userId", async () => {
  const { remoteAgent } = await packedModule("lockgate/remote");
  const sent = [];
  const answer = (url) => (url.includes("/export?") ? new Response("text") : Response.json(url.endsWith("/interrupt") ? { interrupted: true } : ["answer"]));
  const agent = remoteAgent({ url: "/agent", fetch: async (url, { method, body }) => (sent.push([`${method} ${url.slice("/agent/".length)}`, body]), answer(url)) });
  for (const [name, given, request, body] of REQUESTS) {
    const [of, method] = name.startsWith("files.") ? [agent.files, name.slice("files.".length)] : [agent, name];
    const expected = name === "interrupt" ? true : name === "exportSession" ? "text" : ["answer"];
    assert.deepEqual(await of[method](...given), expected, name);
    const [line, json] = sent.pop();
    assert.equal(line, request);
    assert.deepEqual(json === undefined ? undefined : JSON.parse(json), body, name);
  }
  const tried = new Set(REQUESTS.map(([name]) => name.replace(/^files\..*/, "files")));
  assert.deepEqual(Object.keys(agent).filter((name) => !OTHERS.includes(name) && !tried.has(name)), []);
  await agent.close();
});
