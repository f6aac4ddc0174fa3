// The workspace in the packed package: each tool's success and refusal, the owners of files, and the host's `agent.files`.
import { story } from "../support/project.mjs";

story(
  "a model works on its user's files with every tool, and the files are kept after a restart",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const slot = { userId: "alice", sessionId: "s" };
    const played = async (...calls) => {
      const model = scriptedModel(callsOf(...calls));
      const store = fileStore("./kept");
      const agent = await createAgent({ name: "helper", model, store, workspace: true });
      const outcomes = outcomesOf(await agent.call("go", slot));
      await agent.close();
      await store.close();
      return outcomes;
    };
    const content = "one\ntwo\nthree 😀\n";
    const first = await played(
      ["write_file", { path: "notes/a.md", content }],
      ["write_file", { path: "b.txt", content: "Two" }],
      ["write_file", { path: "b.txt", content: "Two more", overwrite: true }],
      ["edit_file", { path: "notes/a.md", old_string: "two", new_string: "2" }],
    );
    assert.deepEqual(first, ["Wrote notes/a.md.", "Wrote b.txt.", "Wrote b.txt.", "Replaced 1 in notes/a.md."]);
    const second = await played(
      ["read_file", { path: "notes/a.md" }],
      ["read_file", { path: "notes/a.md", offset: 1, limit: 1 }],
      ["grep_files", { pattern: "(?i)two|\\d" }],
      ["grep_files", { pattern: "o", path: "notes", glob: "*.md" }],
      ["glob_files", { pattern: "**/*.{md,txt}" }],
      ["list_files", {}],
      ["list_files", { path: "notes" }],
    );
    assert.deepEqual(second, [
      "one\n2\nthree 😀\n",
      "2\n|(Lines 2 to 2 of 3. Go on with offset 2.)",
      "b.txt:1:Two more\nnotes/a.md:2:2",
      "notes/a.md:1:one",
      "b.txt\nnotes/a.md",
      "b.txt\nnotes/",
      "a.md",
    ]);
  },
);

// R62
story(
  "R62: a refusal of a file tool is a result with the reason, and changes nothing",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const store = memoryStore();
    const model = scriptedModel(
      callsOf(
        ["write_file", { path: "../a", content: "" }],
        ["write_file", { path: "docs/a", content: "" }],
        ["write_file", { path: "guide.md", content: "" }],
        ["write_file", { path: "a", content: "x".repeat(101) }],
        ["edit_file", { path: "guide.md", old_string: "", new_string: "x" }],
        ["edit_file", { path: "guide.md", old_string: "e", new_string: "x" }],
        ["edit_file", { path: "guide.md", old_string: "z", new_string: "x" }],
        ["edit_file", { path: "none", old_string: "z", new_string: "x" }],
        ["read_file", { path: "none" }],
        ["read_file", { path: "guide.md", offset: 9 }],
        ["grep_files", { pattern: "(?=x)" }],
        ["grep_files", { pattern: "nowhere" }],
        ["glob_files", { pattern: "*.none" }],
        ["list_files", { path: "none" }],
      ),
    );
    const workspace = { templates: { "guide.md": "the guide" }, readOnly: ["docs"], maxFileBytes: 100 };
    const agent = await createAgent({ name: "helper", model, store, workspace, maxIterations: 20 });
    const outcomes = outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" }));
    const [pattern] = outcomes.splice(10, 1);
    assert.match(pattern, /^error: The pattern cannot be used: /);
    assert.deepEqual(outcomes, [
      'error: the path "../a" leads out of its folder: paths are relative to the workspace, such as notes/today.md',
      "error: docs/a is read-only: write to another path",
      "error: There is a file guide.md already. Change it with edit_file, or set overwrite to replace it.",
      "error: a would have 101 bytes, and a file has at most 100: write less, or several files",
      "error: old_string is empty. Say which text is to be replaced.",
      "error: old_string is in the file more than once. Give more of what is around it, or set replace_all.",
      "error: old_string is not in the file. Read it, and copy the text exactly.",
      "error: There is no file none. Make one with write_file.",
      "error: There is no file none.",
      "error: There is nothing there: the file has 1 lines.",
      "Nothing was found.",
      "No file fits the pattern.",
      "The folder is empty.",
    ]);
    const keys = (await store.list("")).map(({ key }) => key);
    assert.ok(keys.every((key) => !key.includes("/file/")), keys.join("\n"));
  },
);

story(
  "wrong arguments are refused before a tool sees them, with a message for the model",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }) => {
    const model = scriptedModel(
      callsOf(
        ["read_file", {}],
        ["read_file", { path: 7 }],
        ["read_file", { path: "a", offset: -1 }],
        ["write_file", { path: "a" }],
        ["edit_file", { path: "a", old_string: ["x"], new_string: "y" }],
        ["grep_files", { path: "a" }],
        ["glob_files", { pattern: null }],
        ["list_files", { path: {} }],
      ),
    );
    const agent = await createAgent({ name: "helper", model, workspace: true, maxIterations: 20 });
    const outcomes = outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" }));
    assert.equal(outcomes.length, 8);
    for (const outcome of outcomes) assert.match(outcome, /^error: The arguments do not fit/);
    assert.deepEqual(await agent.files.list("alice"), []);
  },
);

//
story(
  "X-13: two users, and two anonymous sessions on a shared store, never see each other's files",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, assert }) => {
    const played = async (store, slot, ...calls) => {
      const model = scriptedModel(callsOf(...calls));
      const agent = await createAgent({ name: "helper", model, store, workspace: true });
      return outcomesOf(await agent.call("go", slot));
    };
    for (const shared of ["host", "cluster", "process", "origin"]) {
      const inner = memoryStore();
      const store = { ...inner, get: inner.get, list: inner.list, commit: inner.commit, capabilities: { ...inner.capabilities, shared } };
      for (const slot of [{ userId: "alice", sessionId: "s" }, { sessionId: "s" }]) {
        assert.deepEqual(await played(store, slot, ["write_file", { path: "a", content: "secret" }]), ["Wrote a."]);
      }
      const seen = async (slot) => {
        const outcomes = await played(store, slot, ["read_file", { path: "a" }], ["grep_files", { pattern: "s" }], ["list_files", {}]);
        return outcomes.join().includes("secret");
      };
      assert.ok(await seen({ userId: "alice", sessionId: "other" }), "all sessions of a user share files");
      assert.ok(await seen({ sessionId: "s" }));
      assert.ok(!(await seen({ userId: "bob", sessionId: "s" })));
      assert.equal(await seen({ sessionId: "other" }), shared === "origin", shared);
    }
  },
);

story(
  "deleting a user deletes the user's files, and deleting an anonymous session deletes its files",
  async ({ createAgent, scriptedModel, callsOf, assert }) => {
    const { fileStore } = await import("lockgate/stores/node");
    const store = fileStore("./kept");
    const files = async () => (await store.list("")).filter(({ key }) => key.includes("/file/")).length;
    const write = callsOf(["write_file", { path: "a", content: "text" }]);
    const model = scriptedModel([...write, ...write]);
    const agent = await createAgent({ name: "helper", model, store, workspace: true });
    await agent.call("go", { userId: "alice", sessionId: "s" });
    await agent.call("go", { sessionId: "s" });
    assert.equal(await files(), 2);
    await agent.deleteSession({ sessionId: "s" });
    assert.equal(await files(), 1);
    await agent.deleteSession({ userId: "alice", sessionId: "s" });
    assert.deepEqual(await agent.files.list("alice"), ["a"]);
    await agent.deleteUser("alice");
    assert.equal(await files(), 0);
    await store.close();
  },
);

story(
  "if two sessions write one file at once, one write succeeds, and the other session's model is told",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, memoryStore, barrier, assert }) => {
    const inner = memoryStore();
    const both = barrier(2);
    const store = {
      ...inner,
      get: inner.get,
      list: inner.list,
      commit: async (batch) => {
        if (batch.put.some(({ key }) => key.includes("/file/"))) await both();
        return inner.commit(batch);
      },
    };
    const played = async (sessionId, call) => {
      const agent = await createAgent({ name: "helper", model: scriptedModel(callsOf(call)), store, workspace: true });
      return outcomesOf(await agent.call("go", { userId: "alice", sessionId }));
    };
    const write = (content) => ["write_file", { path: "a", content }];
    const made = (await Promise.all([played("s1", write("one")), played("s2", write("two"))])).flat().sort();
    assert.deepEqual(made, [
      "Wrote a.",
      "error: There is a file a already. Change it with edit_file, or set overwrite to replace it.",
    ]);
    const again = barrier(2);
    store.commit = async (batch) => {
      if (batch.put.some(({ key }) => key.includes("/file/"))) await again();
      return inner.commit(batch);
    };
    const over = (content) => ["write_file", { path: "a", content, overwrite: true }];
    const kept = (await Promise.all([played("s1", over("three")), played("s2", over("four"))])).flat().sort();
    assert.deepEqual(kept, [
      "Wrote a.",
      "error: a was written by somebody else meanwhile; nothing was changed. Read it again first.",
    ]);
  },
);

story(
  "two calls of one turn that change one file run one after the other",
  async ({ createAgent, scriptedModel, outcomesOf, assert }) => {
    const edit = (old_string, new_string) => ({ name: "edit_file", input: { path: "a", old_string, new_string } });
    const model = scriptedModel([
      { toolCalls: [{ ...edit("one", "1"), id: "c1" }, { ...edit("two", "2"), id: "c2" }] },
      "Done.",
    ]);
    const agent = await createAgent({ name: "helper", model, workspace: { templates: { a: "one two" } } });
    const reply = await agent.call("go", { userId: "alice", sessionId: "s" });
    assert.deepEqual(outcomesOf(reply), ["Replaced 1 in a.", "Replaced 1 in a."]);
    assert.equal(await agent.files.read("alice", "a"), "1 2");
    assert.equal(await agent.files.read("bob", "a"), "one two");
  },
);

story(
  "the host reads, writes, lists and deletes files, even those that tools may not write",
  async ({ createAgent, echo, refusal, mapStore, assert }) => {
    const workspace = { templates: { "docs/a.md": "given" }, readOnly: ["docs"], maxFileBytes: 1000 };
    const { files } = await createAgent({ name: "helper", model: echo(), store: mapStore(), workspace });
    assert.equal(await files.write("alice", "docs/a.md", "mine 😀"), undefined);
    await files.write("alice", "./b/c", "");
    assert.equal(await files.read("alice", "docs/a.md"), "mine 😀");
    assert.equal(await files.read("alice", "b/c"), "");
    assert.deepEqual(await files.list("alice"), ["b/c", "docs/a.md"]);
    assert.deepEqual(await files.list("alice", "b"), ["b/c"]);
    assert.deepEqual(await files.list("alice", "nowhere"), []);
    assert.equal(await files.delete("alice", "docs/a.md"), undefined);
    await files.delete("alice", "nowhere");
    assert.equal(await files.read("alice", "docs/a.md"), "given");
    const two = await Promise.allSettled([files.write("alice", "d", "one"), files.write("alice", "d", "two")]);
    const lost = two.filter(({ status }) => status === "rejected").map(({ reason }) => reason.code);
    assert.deepEqual(lost, ["SUPERSEDED"]);
    const codes = [];
    for (const attempt of [
      () => files.read("alice", "none"),
      () => files.write("alice", "x", "x".repeat(1001)),
      () => files.write("alice", "x", 7),
      () => files.write("alice", "x", "\ud800"),
      () => files.read(undefined, "a"),
      () => files.read(" ", "a"),
      () => files.list(null),
    ]) {
      const { code, hint } = await refusal(attempt);
      assert.ok(hint, code);
      codes.push(code);
    }
    assert.deepEqual(codes, ["PATH_INVALID", "STATE_TOO_LARGE", "INPUT_INVALID", "INPUT_INVALID", "ID_INVALID", "ID_INVALID", "ID_INVALID"]);
  },
);

//
story(
  "X-12: a path that leads out is PATH_INVALID in every method, with a hint, and stores nothing",
  async ({ createAgent, echo, refusal, watched, assert }) => {
    const { store, count } = watched();
    const { files } = await createAgent({ name: "helper", model: echo(), store, workspace: true });
    const paths = [
      "../a", "a/../../b", "..", "/a", "//a", "a//b", "a\\..\\b", "C:\\a", "a\0b", "%2e%2e/a", "%252e%252e", "..%2fa",
      "．．/a", "․․", "‥", "..／a", "\ud800", 7, null, "a".repeat(256), "a/".repeat(600) + "b",
    ];
    for (const path of paths) {
      for (const attempt of [files.read, (...id) => files.write(...id, ""), files.list, files.delete]) {
        const { code, hint } = await refusal(() => attempt("alice", path));
        assert.deepEqual([code, typeof hint], ["PATH_INVALID", "string"], JSON.stringify(path));
      }
    }
    assert.equal(count.commit, 0);
    for (const path of ["a..b", "..a", ".hidden", "100%", "日本語/メモ.md"]) {
      await files.write("alice", path, path);
      assert.equal(await files.read("alice", path), path);
    }
  },
);

story(
  "without a userId agent.files covers the default session, and is refused if a userId is required",
  async ({ createAgent, echo, refusal, memoryStore, assert }) => {
    const store = memoryStore();
    const agent = await createAgent({ name: "helper", model: echo(), store, workspace: true, defaultSessionId: "main" });
    await agent.files.write(null, "a", "text");
    assert.deepEqual(await agent.files.list(null), ["a"]);
    assert.deepEqual((await store.list("")).map(({ key }) => key), ["1.t.helper/anonymous/slot/t.main/file/t.a"]);
    await agent.deleteSession({ sessionId: "main" });
    assert.deepEqual(await agent.files.list(null), []);
    const strict = await createAgent({ name: "helper", model: echo(), store, workspace: true, requireUserId: true });
    assert.equal((await refusal(() => strict.files.list(null))).code, "ID_INVALID");
  },
);

story(
  "an invalid workspace is refused with OPTIONS, and without a workspace there are no files and no tools",
  async ({ createAgent, scriptedModel, refusal, assert }) => {
    const model = scriptedModel(["Hello."]);
    const refused = async (workspace) => {
      const { code, message, hint } = await refusal(() => createAgent({ name: "helper", model, workspace }));
      assert.deepEqual([code, typeof hint], ["OPTIONS", "string"], message);
      return message;
    };
    assert.equal(await refused({ template: {} }), 'there is no member of workspace "template"');
    assert.equal(await refused({ templates: { "../a": "" } }), 'workspace: the path "../a" leads out of its folder');
    assert.equal(await refused({ readOnly: ["docs/**"] }), 'workspace: readOnly has the pattern "docs/**"');
    assert.equal(await refused({ templates: { a: "four" }, maxFileBytes: 3 }), "workspace: a would have 4 bytes, and a file has at most 3");
    for (const workspace of ["yes", 1, null, [], { templates: [] }, { templates: { a: 1 } }, { readOnly: "docs" }, { maxFileBytes: 0 }, { maxFileBytes: "1" }]) {
      await refused(workspace);
    }
    const agent = await createAgent({ name: "helper", model, workspace: false });
    await agent.call("hi", { sessionId: "s" });
    const names = model.requests[0].tools.map(({ name }) => name);
    assert.ok(names.every((name) => !/_files?$/.test(name)), names.join());
    const { code, message } = await refusal(() => agent.files.list("alice"));
    assert.deepEqual([code, message], ["OPTIONS", "the agent has no workspace"]);
  },
);

//
story(
  "X-10: a pattern that would hang a backtracking engine is searched to its end",
  async ({ createAgent, scriptedModel, callsOf, outcomesOf, assert }) => {
    const grep = (pattern) => ["grep_files", { pattern }];
    const patterns = ["(a+)+$b", "(a|aa)+c", "(.*)*x", "(a?){50}a{50}b"];
    const model = scriptedModel(callsOf(...patterns.map(grep)));
    const workspace = { templates: { a: "a".repeat(100_000) } };
    const agent = await createAgent({ name: "helper", model, workspace });
    const outcomes = outcomesOf(await agent.call("go", { userId: "alice", sessionId: "s" }));
    assert.deepEqual(outcomes, patterns.map(() => "Nothing was found."));
  },
);
