// lockgate/transcript with the packed package.
import { story } from "../support/project.mjs";

story(
  "checkTranscript names every problem that a provider would refuse, and repairTranscript removes it",
  async ({ assert }) => {
    const { checkTranscript, repairTranscript } = await import("lockgate/transcript");
    const message = (id, role, ...content) => ({ id, role, content, at: "2026-01-01T00:00:00Z" });
    const text = (text) => ({ type: "text", text });
    const call = (id) => ({ type: "tool_use", id, name: "clock", input: {}, state: "finished" });
    const result = (id) => ({ type: "tool_result", id, name: "clock", output: [text("noon")], state: "success" });
    const rules = (messages, dialect) => checkTranscript(messages, dialect).map(({ rule }) => rule);

    const fine = [message("1", "user", text("Time?")), message("2", "assistant", call("a"), call("b")), message("3", "tool", result("a")), message("4", "tool", result("b")), message("5", "assistant", text("Noon.")), message("6", "user", text("Thanks"))];
    for (const dialect of ["openai", "anthropic", "gemini"]) assert.deepEqual(checkTranscript(fine, dialect), [], dialect);

    // H-01, H-02, H-03, H-05, H-06, H-10
    const cases = [
      [[message("1", "user", text("hi")), message("2", "assistant", call("a"))], "call-without-result", "openai"],
      [[message("1", "user", text("hi")), message("2", "tool", result("a"))], "result-without-call", "openai"],
      [[message("1", "user", text("hi")), message("2", "assistant", call("a")), message("3", "tool", result("a"), result("a"))], "result-twice", "anthropic"],
      [[message("1", "user", text("hi")), message("2", "assistant", call("a")), message("3", "user", text("note")), message("4", "tool", result("a"))], "call-without-result", "gemini"],
      [[message("1", "assistant", text("hi")), message("2", "user", text("hi"))], "first-not-user", "anthropic"],
      [[message("1", "user", text("hi")), message("2", "assistant", text("hi"))], "last-not-user", "gemini"],
      [[message("1", "user", text(" "))], "text-empty", "anthropic"],
      [[message("1", "user", text("hi")), message("2", "assistant", call("odd|id")), message("3", "tool", result("odd|id"))], "id-alphabet", "anthropic"],
    ];
    for (const [messages, rule, dialect] of cases) {
      const found = checkTranscript(messages, dialect);
      assert.ok(found.some((each) => each.rule === rule && each.message !== ""), `${rule}: ${JSON.stringify(found)}`);
      const mended = repairTranscript(messages, dialect);
      assert.deepEqual(rules(mended, dialect), [], JSON.stringify(mended));
      assert.equal(new Set(mended.map(({ id }) => id)).size, mended.length, "ids are unique");
    }
    const [, violation] = [0, ...checkTranscript(cases[0][0], "openai")];
    assert.deepEqual([violation.rule, violation.messageId], ["call-without-result", "2"]);
    assert.throws(() => checkTranscript("no", "openai"), { code: "INPUT_INVALID" });
    assert.throws(() => checkTranscript(fine, "klingon"), { code: "INPUT_INVALID" });
    assert.throws(() => repairTranscript([{ nonsense: true }], "openai"), { code: "INPUT_INVALID" });
  },
);
