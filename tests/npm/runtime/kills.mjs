// workerd is killed repeatedly at random moments of a turn. `npm test` runs a short version, `npm run test:long` a long one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asker, startHosted, startPlace } from "../support/hosted.mjs";
import { folder } from "../support/servers.mjs";

export function killStory(kills) {
  test(`W-01: workerd killed ${kills} times at random moments loses nothing acknowledged, closes every accepted turn, and runs no tool twice`, async (t) => {
    const place = await startPlace();
    const settings = { durableObjectsPersist: folder("kills"), handleRuntimeStdio: (...logs) => logs.forEach((log) => log.resume()) };
    let hosted;
    t.after(async () => {
      await hosted?.stop();
      place.close();
    });
    const alice = asker(() => hosted, "alice");
    const accepted = [];
    const kept = [];
    for (let nth = 0; nth < kills; nth++) {
      hosted = await startHosted(place, { settings });
      // The duration of a turn here, once everything is loaded: the kill comes during the turn or shortly after it.
      await seen(alice("sessions/warm/messages", { input: "use count" }));
      const start = performance.now();
      await seen(alice("sessions/warm/messages", { input: "use count" }));
      const moment = (0.3 + 1.2 * Math.random()) * (performance.now() - start);
      const dead = new Promise((resolve) => setTimeout(() => hosted.kill().then(resolve), moment));
      const text = await seen(alice("sessions/s/messages", { input: `use count w${nth}` }));
      if (text.includes('"type":"accepted"')) accepted.push(`w${nth}`);
      if (text.includes('"type":"call-end"')) kept.push(`w${nth}`);
      await dead;
    }
    hosted = await startHosted(place, { settings });
    const history = await (await alice("sessions/s/history")).json();
    const lines = history.map(({ role, name, content }) => `${name ?? role}: ${content.map((block) => block.text ?? block.output?.[0]?.text ?? block.name).join("")}`);
    for (const word of accepted) assert.equal(lines.filter((line) => line === `user: use count ${word}`).length, 1, `${word} was accepted`);
    for (const word of kept) {
      const at = lines.indexOf(`user: use count ${word}`);
      assert.deepEqual(lines.slice(at + 1, at + 4), ["assistant: count", `tool: ran ${word}`, `assistant: the tool said: ran ${word}`]);
    }
    for (const [at, line] of lines.entries()) {
      if (line.startsWith("user: ")) assert.match(lines[at + 1] ?? "", /^(assistant: count|system: The answer to this was cut off)/, line);
    }
    const runs = place.ran.map(({ word }) => word).filter((word) => word !== "");
    assert.equal(new Set(runs).size, runs.length, "a tool ran twice");
    if (kills >= 100) assert.ok(kept.length > 0 && kept.length < accepted.length, "no turn was killed while it ran");
    t.diagnostic(`${accepted.length} accepted, ${kept.length} acknowledged, ${runs.length} tools run`);
  });
}

/** The part of an answer that arrived before its worker died. */
async function seen(asking) {
  let text = "";
  try {
    for await (const some of (await asking).body.pipeThrough(new TextDecoderStream())) text += some;
  } catch {
    // The worker died.
  }
  return text;
}
