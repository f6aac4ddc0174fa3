// workerd is killed during streamed answers. `npm test` runs a short version, `npm run test:long` a long one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asker, startHosted, startPlace, workerSource } from "../support/hosted.mjs";
import { folder } from "../support/servers.mjs";

const CHECKPOINT_MS = 20;

/** A model that sends "w0 w1 w2 …" until its client is gone. */
function stream(response) {
  let n = 0;
  const timer = setInterval(() => response.write(`w${n++} `), 2);
  response.on("close", () => clearInterval(timer));
}

export function checkpointStory(kills) {
  test(`after ${kills} kills of workerd at random moments of streamed answers, each question is there with its answer up to the last checkpoint`, async (t) => {
    const place = await startPlace();
    place.answer = (_, response) => stream(response);
    const settings = { durableObjectsPersist: folder("checkpoints"), handleRuntimeStdio: (...logs) => logs.forEach((log) => log.resume()) };
    const source = workerSource(`more() { return { checkpointMs: ${CHECKPOINT_MS} }; }`);
    let hosted;
    t.after(async () => {
      await hosted?.stop();
      place.close();
    });
    const alice = asker(() => hosted, "alice");
    const answerOf = async (nth) => {
      const history = await (await alice(`sessions/s${nth}/history`)).json();
      return history.map(({ role, turn, content }) => ({ role, turn, text: content.map(({ text }) => text).join("") }));
    };
    const stored = [];
    for (let nth = 0; nth < kills; nth++) {
      hosted = await startHosted(place, { source, settings });
      const asking = seen(alice(`sessions/s${nth}/messages`, { input: "go" }));
      let last = "";
      const enough = performance.now() + 150 * Math.random();
      // Readers see the stored part of the answer while it is streamed.
      while (last === "" || performance.now() < enough) last = (await answerOf(nth)).at(1)?.text ?? "";
      await hosted.kill();
      await asking;
      stored.push(last);
    }
    hosted = await startHosted(place, { source, settings });
    for (const [nth, last] of stored.entries()) {
      // An object that starts again may have logged the answer, with a note behind it.
      const [question, answer] = await answerOf(nth);
      assert.deepEqual([question.text, question.turn, answer?.role], ["go", "interrupted", "assistant"]);
      const n = answer.text.trim().split(" ").length;
      assert.equal(answer.text, Array.from({ length: n }, (_, word) => `w${word} `).join(""), "a part is missing or doubled");
      assert.ok(answer.text.startsWith(last), "what readers saw is gone");
    }
  });
}

/** Reads an answer until its worker dies. */
async function seen(asking) {
  try {
    for await (const _ of (await asking).body);
  } catch {
    // The worker died.
  }
}
