// A browser that is killed, and a browser with damaged files: the remaining data, and the errors.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { launchOptions, openPage, origins, within } from "../support/browser.mjs";

/** A browser with a profile that is kept, in its own process group. `end` kills the browser or closes it. */
async function launch(profile) {
  const { executablePath, args } = launchOptions();
  const own = [`--user-data-dir=${profile}`, "--remote-debugging-port=0", "about:blank"];
  const child = spawn(executablePath, [...args, ...own], { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  const gone = once(child, "exit");
  const address = await new Promise((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
      const found = said.match(/DevTools listening on (\S+)/);
      if (found) resolve(found[1]);
    });
    gone.then(() => reject(new Error(`the browser did not start: ${said}`)));
  });
  const browser = await chromium.connectOverCDP(address);
  const page = await openPage(browser.contexts()[0], origins().secure);
  const kill = async () => {
    process.kill(-child.pid, "SIGKILL");
    await gone;
  };
  const close = async () => {
    const session = await browser.newBrowserCDPSession();
    await Promise.all([gone, session.send("Browser.close").catch(() => {})]);
  };
  return { page, kill, close };
}

const talk = async ({ createAgent, indexedDbStore, echo, texts }, say) => {
  const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore("app") });
  const slot = { sessionId: "s1" };
  for (const text of say) await agent.call(text, slot);
  return texts(agent, slot);
};

function profile(t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-profile-"));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

// B-11, F-01, except for a power cut, which a test cannot make.
test("acknowledged turns on IndexedDB are kept when the browser is killed", { timeout: 120_000 }, async (t) => {
  const folder = profile(t);
  for (const round of [1, 2, 3]) {
    const { page, kill } = await launch(folder);
    const told = await within(page, talk, [`round ${round}`]);
    await kill();
    assert.deepEqual(
      told.filter((text) => text.startsWith("round")),
      Array.from({ length: round }, (_, n) => `round ${n + 1}`),
    );
  }
});

test("F-01: after a kill a session in localStorage is complete, in an earlier state", { timeout: 120_000 }, async (t) => {
  const folder = profile(t);
  const told = [];
  for (const round of [1, 2, 3]) {
    const { page, kill } = await launch(folder);
    const texts = await within(page, async ({ createAgent, localStorageStore, echo, texts }, round) => {
      const agent = await createAgent({ name: "helper", model: echo(), store: localStorageStore("app") });
      const slot = { sessionId: "s1" };
      await agent.call(`round ${round}`, slot);
      return texts(agent, slot);
    }, round);
    await kill();
    // The last turns may be lost, but never half of a turn, and the others are unchanged.
    const kept = texts.filter((text) => text.startsWith("round"));
    assert.deepEqual(texts, kept.flatMap((text) => [text, `you said ${text}`]));
    assert.deepEqual(kept, [...told.filter((text) => kept.includes(text)), `round ${round}`]);
    told.push(`round ${round}`);
  }
});

// B-07
test("a database with damaged files is reported once, and then the page works", { timeout: 120_000 }, async (t) => {
  const folder = profile(t);
  const { page, close } = await launch(folder);
  await within(page, talk, ["one"]);
  await close();
  const damaged = fs
    .readdirSync(folder, { recursive: true })
    .filter((name) => name.includes("IndexedDB"))
    .map((name) => path.join(folder, name))
    .filter((name) => fs.statSync(name).isFile());
  assert.ok(damaged.length > 0);
  for (const file of damaged) fs.writeFileSync(file, "this is no database".repeat(500));
  const again = await launch(folder);
  const told = await within(again.page, async ({ createAgent, indexedDbStore, echo, rejection }) => {
    const agent = await createAgent({ name: "helper", model: echo(), store: indexedDbStore("app") });
    const refused = await rejection(agent.call("two", { sessionId: "s1" }));
    return { refused, reply: (await agent.call("three", { sessionId: "s1" })).text };
  });
  await again.close();
  assert.equal(told.refused.code, "STORE_CORRUPT");
  assert.match(told.refused.message, /damaged/);
  assert.equal(told.reply, "you said three");
});
