// Who may do what at the edge: rights of callers, every way around them, and requests that pages of other sites could send.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { allOf, asker, startHosted, startPlace, workerSource } from "../support/hosted.mjs";

let hosted, place;
const as = (user, rights) => asker(() => hosted, user, rights);
const ALL = "talk manage permissions";

before(async () => {
  place = await startPlace();
  const body = `more() { return { planMode: true, persistence: { permissions: true } }; }`;
  const more = `origins: ["*", "https://friend.example"],`;
  hosted = await startHosted(place, { source: workerSource(body, more) });
});

after(async () => {
  await hosted?.stop();
  place?.close();
});

async function said(response, status = 200) {
  const text = await response.text();
  assert.equal(response.status, status, text);
  return text === "" ? undefined : JSON.parse(text);
}

const refused = async (response) => assert.equal((await said(response, 403)).code, "FORBIDDEN");
const put = (ask, path, body) => ask(path, body, { method: "PUT" });
const remove = (ask, path) => ask(path, undefined, { method: "DELETE" });
const say = async (ask, session, input) => (await allOf(await ask(`sessions/${session}/messages`, { input }))).at(-1).reply;
const state = async (ask, session) => said(await ask(`sessions/${session}/state`));
const setMode = async (ask, session, mode) => said(await put(ask, `sessions/${session}/permission-mode`, { mode }));
const modeOf = async (ask, session) => (await state(ask, session)).permission_context.mode;

test("a caller without rights from authenticate talks and manages, and cannot change what tools may do", async () => {
  const ann = as("ann");
  assert.equal((await say(ann, "s", "use post news")).reason, "asking");
  await refused(await put(ann, "sessions/s/permission-mode", { mode: "bypass" }));
  const { permission_context } = await state(ann, "s");
  await refused(await put(ann, "sessions/s/permissions", { context: { ...permission_context, mode: "bypass" } }));
  await said(await ann("sessions/s", { title: "mine" }, { method: "PATCH" }));
  await setMode(as("ann", ALL), "s", "bypass");
  assert.equal((await say(ann, "s", "use post news")).text, "the tool said: ran news");
});

test("each right opens its routes and no others", async () => {
  const [talk, manage, permissions] = ["talk", "manage", "permissions"].map((right) => as("ben", right));
  await say(talk, "s", "hello");
  const text = await (await talk("sessions/s/export")).text();
  const current = await state(talk, "s");
  const reads = ["sessions", "sessions/s", "sessions/s/history", "sessions/s/asks", "sessions/s/inspect", "sessions/s/branches", "search?query=hello", "files", "tools", "storage", "chat/s"];
  const changes = [
    ["PATCH", "sessions/s", { title: "t" }], ["PUT", "sessions/s/state", { state: current }], ["POST", "sessions/s/append", { messages: [{ role: "user", content: "x" }] }],
    ["POST", "sessions/s/clear", {}], ["POST", "sessions/s/fork", { to: "t" }], ["POST", "sessions/u/import", { text }], ["POST", "sessions/s/plan", {}],
    ["PUT", "file", { path: "a.md", text: "x" }], ["DELETE", "file?path=a.md"], ["POST", "sessions/s/repair", {}], ["DELETE", "sessions/t"], ["DELETE", "user"],
  ];
  const mode = ["PUT", "sessions/s/permission-mode", { mode: "explore" }];
  for (const path of reads) {
    assert.equal((await talk(path)).status, 200, path);
    await refused(await manage(path));
    await refused(await permissions(path));
  }
  for (const [method, path, body] of [...changes, mode, ["DELETE", "sessions/s/plan"]]) await refused(await talk(path, body, { method }));
  for (const [method, path, body] of changes) await refused(await permissions(path, body, { method }));
  await refused(await manage("sessions/s/messages", { input: "hello" }));
  await refused(await manage(mode[1], mode[2], { method: mode[0] }));
  assert.equal((await permissions(mode[1], mode[2], { method: mode[0] })).status, 200);
  for (const [method, path, body] of changes) assert.ok((await manage(path, body, { method })).status !== 403, `${method} ${path}`);
});

test("put state changes permissions and plan mode only with the right; without it they must be as stored", async () => {
  const [cleo, admin] = [as("cleo"), as("cleo", ALL)];
  await say(cleo, "s", "hello");
  const current = await state(cleo, "s");
  const { permission_context: own } = current;
  const rule = { tool_name: "post", rule_content: null, behavior: "allow", source: "me" };
  for (const permission_context of [{ ...own, mode: "bypass" }, { ...own, allow_rules: [rule] }, undefined && own]) {
    if (permission_context === undefined) continue;
    await refused(await put(cleo, "sessions/s/state", { state: { ...current, permission_context } }));
  }
  await said(await put(cleo, "sessions/s/state", { state: { ...current, context: [] } }));
  await refused(await put(cleo, "sessions/fresh/state", { state: { ...(await state(cleo, "fresh")), permission_context: { ...own, mode: "bypass" } } }));
  await said(await cleo("sessions/s/plan", {}));
  await refused(await remove(cleo, "sessions/s/plan"));
  const planning = await state(cleo, "s");
  await refused(await put(cleo, "sessions/s/state", { state: { ...planning, plan_mode_context: { ...planning.plan_mode_context, plan_active: false } } }));
  const { permission_context: _, ...without } = await state(cleo, "s");
  await setMode(admin, "s", "explore");
  await refused(await put(cleo, "sessions/s/state", { state: { ...without, revision: (await state(cleo, "s")).revision } }));
  assert.equal(await modeOf(cleo, "s"), "explore");
});

test("an import brings only the agent's own permissions, in every format and in every part of the document", async () => {
  const [dan, admin] = [as("dan"), as("dan", ALL)];
  await say(dan, "s", "hello");
  const plain = await (await dan("sessions/s/export")).text();
  await said(await dan("sessions/copy/import", { text: plain }));
  await setMode(admin, "s", "bypass");
  const wide = await (await dan("sessions/s/export")).text();
  const scope = await (await dan("sessions/s/export?format=agentscope")).text();
  const own = JSON.stringify(await state(dan, "s"));
  for (const [n, text] of [wide, scope, own, JSON.stringify({ agent_state: JSON.parse(scope) })].entries()) {
    await refused(await dan(`sessions/i${n}/import`, { text }));
    assert.deepEqual(await said(await dan(`sessions/i${n}/history`)), []);
  }
  // A branch that was left with other permissions.
  await (await dan("sessions/s/resend", { input: "else" })).text();
  await setMode(admin, "s", "default");
  await refused(await dan("sessions/branch/import", { text: await (await dan("sessions/s/export")).text() }));
  await said(await admin("sessions/branch/import", { text: wide }));
});

test("going to another branch, answering again and forking bring back no wider permissions, and do not end plan mode", async () => {
  const [eve, admin] = [as("eve"), as("eve", ALL)];
  await say(eve, "s", "one");
  await setMode(admin, "s", "bypass");
  await say(eve, "s", "two");
  const [, , question] = await said(await eve("sessions/s/history"));
  await (await eve("sessions/s/resend", { input: "another two" })).text();
  await setMode(admin, "s", "default");
  const { id } = (await said(await eve("sessions/s/branches"))).find(({ current }) => !current);
  await said(await put(eve, "sessions/s/branch", { branch: id }));
  assert.equal(await modeOf(eve, "s"), "default", "by a branch");
  await say(eve, "s", "three");
  await (await eve("sessions/s/resend", { from: question.id })).text();
  assert.equal(await modeOf(eve, "s"), "default", "by a resend");
  await (await eve("chat", { id: "s", trigger: "regenerate-message", messages: [] })).text();
  assert.equal(await modeOf(eve, "s"), "default", "by useChat");
  await said(await eve("sessions/s/fork", { to: "t", upTo: question.id }));
  assert.equal(await modeOf(eve, "t"), "default", "by a fork");
  await said(await eve("sessions/s/plan", {}));
  await (await eve("sessions/s/resend", { from: question.id })).text();
  assert.equal((await state(eve, "s")).plan_mode_context.plan_active, true, "plan mode ended");
});

test("whoever may answer a question may remember the rule that it suggests, and no wider one", async () => {
  const fay = as("fay", "talk");
  await say(fay, "s", "use post one");
  const [ask] = await said(await fay("sessions/s/asks"));
  const answer = (remember) => fay("sessions/s/answers", { answers: [{ toolCallId: ask.toolCallId, approve: true, remember }] });
  const rule = { tool_name: "post", rule_content: null, behavior: "allow", source: "me" };
  await refused(await answer([{ ...rule, tool_name: "count" }]));
  await refused(await answer([{ ...rule, rule_content: "anything" }]));
  assert.deepEqual((await state(fay, "s")).permission_context.allow_rules, []);
  assert.equal(ask.suggestedRules.length, 1);
  assert.equal((await allOf(await answer(ask.suggestedRules))).at(-1).reply.text, "the tool said: ran one");
  assert.equal((await say(fay, "s", "use post two")).text, "the tool said: ran two");
  // The result of a tool that runs outside is no approval.
  await say(fay, "t", "use outside x");
  const [outside] = await said(await fay("sessions/t/asks"));
  await refused(await fay("sessions/t/answers", { answers: [{ toolCallId: outside.toolCallId, output: "done", remember: [{ ...rule, tool_name: "outside" }] }] }));
});

test("a client cannot give itself rights, attributes or options of the agent", async () => {
  const gus = as("gus");
  const extra = { rights: ["permissions"], attributes: { admin: true }, holdsPermissions: false, permissions: { mode: "bypass" }, generate: { extra: { x: 1 }, rights: ["permissions"] } };
  const reply = (await allOf(await gus("sessions/s/messages?rights=permissions", { input: "use post news", ...extra }))).at(-1).reply;
  assert.equal(reply.reason, "asking");
  await refused(await put(gus, "sessions/s/permission-mode?rights=permissions", { mode: "bypass", ...extra }));
  await said(await as("gus", "everything")("sessions"), 400);
});

test("a request that changes something and that any page could send is refused, whatever origins says", async () => {
  const hal = as("hal");
  const body = JSON.stringify({ input: "hello" });
  for (const type of ["text/plain", "text/plain;charset=application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]) {
    await refused(await hal("sessions/s/messages", body, { headers: { "content-type": type, origin: "https://evil.example", cookie: "session=hal" } }));
  }
  await refused(await hal("sessions/s", undefined, { method: "DELETE", headers: { "content-type": "text/plain" } }));
  await refused(await hal("chat/s/stop", "", { headers: { "content-type": "text/plain" } }));
  assert.deepEqual(await said(await hal("sessions/s/history")), []);
  for (const headers of [{ "content-type": "application/json; charset=utf-8" }, { "content-type": "text/plain", "x-lockgate": "1" }]) {
    assert.equal((await hal("sessions/s/messages", body, { headers })).status, 200);
  }
});

test("an origin that only * allows reads without cookies, and only named origins get them", async () => {
  const ida = as("ida");
  const from = async (origin) => {
    const { headers } = await ida("sessions", undefined, { headers: { origin } });
    return [headers.get("access-control-allow-origin"), headers.get("access-control-allow-credentials")];
  };
  assert.deepEqual(await from("https://evil.example"), ["*", null]);
  assert.deepEqual(await from("*"), ["*", null]);
  assert.deepEqual(await from("https://friend.example"), ["https://friend.example", "true"]);
  const asked = { method: "OPTIONS", headers: { origin: "https://evil.example", "access-control-request-headers": "content-type" } };
  assert.equal((await as()("sessions/s/messages", undefined, asked)).headers.get("access-control-allow-credentials"), null);
});

test("ids that are no text, or half of a character, are answered with 400", async () => {
  const jon = as("jon");
  const half = "\ud800";
  const odd = { toString: 1 };
  const tries = [
    ["sessions/s/messages", { input: "hello", callId: half }], ["sessions/s/messages", { input: "hello", callId: odd }], ["sessions/s/messages", { input: "hello", callId: 7 }],
    ["chat", { id: half, messages: [{ role: "user", parts: [{ type: "text", text: "x" }] }] }], ["chat", { id: odd, messages: [] }], ["chat", { id: ["s"], messages: [] }],
    ["sessions/s/interrupt", { callId: odd }], ["sessions/s/interrupt", { callId: half }], ["sessions/s/fork", { to: odd }], ["sessions/s/fork", { to: half }],
    ["sessions/s/resend", { from: odd }], ["sessions/s/import", { text: odd }], ["sessions/s/answers", { answers: [{ toolCallId: odd, approve: true }] }],
    ["sessions/s/answers", { answers: [odd] }], ["sessions/s/append", { messages: [odd] }],
  ];
  await say(jon, "s", "use post x");
  for (const user of ["jon", "anonymous"]) {
    for (const [path, body] of tries) {
      const response = await as(user)(path, body);
      const text = await response.text();
      assert.ok(response.status < 500, `${path} ${JSON.stringify(body)}: ${text}`);
      if (path.endsWith("messages") || path === "chat") assert.equal(response.status, 400, `${path} ${JSON.stringify(body)}: ${text}`);
    }
  }
  const paths = [["PUT", "sessions/s/branch", { branch: odd }], ["PATCH", "sessions/s", { title: odd }], ["PUT", "file", { path: odd, text: odd }]];
  for (const [method, path, body] of paths) assert.equal((await jon(path, body, { method })).status, 400, path);
});

test("a body that authenticate has read is answered with 400 and a hint", async (t) => {
  const greedy = `authenticate: async (request) => { await request.text(); return { userId: "kim" }; },`;
  const other = await startHosted(place, { source: workerSource("", greedy) });
  t.after(() => other.stop());
  const response = await fetch(`${other.url}/sessions/s/messages`, { method: "POST", headers: { "content-type": "application/json" }, body: '{ "input": "hello" }' });
  const { code, hint } = await said(response, 400);
  assert.equal(code, "INPUT_INVALID");
  assert.match(hint, /clone/);
});
