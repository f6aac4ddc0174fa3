// How the page starts: before the wasm is there, while it comes, and when it does not.
import assert from "node:assert/strict";
import http from "node:http";
import { after, test } from "node:test";
import { answer, artefacts, heard, open, phone, say, sayAndHear, storageOf } from "./page.mjs";

const { story, close, browser, url } = await open();
after(close);

const desk = { viewport: { width: 1200, height: 800 } };
const boxes = (page) =>
  page.evaluate(() =>
    [".side h1", ".user", ".side .plain", ".search input", ".bar", ".composer .box"].map((name) => {
      const { x, y, width, height } = document.querySelector(name).getBoundingClientRect();
      return [name, x, y, width, height].join(" ");
    }),
  );

/** The same page from a server that sends half of the wasm, and the rest when it is let go. */
async function slowly(tell) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const server = http.createServer(async (request, response) => {
    const answer = await fetch(new URL(request.url, url));
    const body = Buffer.from(await answer.arrayBuffer());
    const { "content-encoding": _, ...headers } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, { ...headers, "content-length": body.length });
    if (!request.url.endsWith(".wasm")) return response.end(body);
    response.write(body.subarray(0, body.length / 2));
    await released;
    response.end(body.subarray(body.length / 2));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await tell(`http://127.0.0.1:${server.address().port}/`, release);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

for (const [name, options] of Object.entries({ desk, phone })) {
  test(`on a ${name} the page is there before the wasm, shows how far it is, and does not jump`, async () => {
    await slowly(async (slow, release) => {
      const context = await browser.newContext(options);
      try {
        const page = await context.newPage();
        await page.goto(slow);
        await page.getByText("Loading the engine").waitFor();
        if (name === "desk") await page.getByRole("heading", { name: "Lockgate" }).waitFor();
        // Half of the first of its two files is here.
        await page.waitForFunction(() => {
          const { value, position } = document.querySelector("progress");
          return position > 0 && value > 0.2 && value < 0.3;
        });
        const before = await boxes(page);
        await page.screenshot({ path: `${artefacts}start-loading-${name}.png` });
        assert.equal(await page.getByRole("textbox", { name: "Message" }).count(), 0);
        release();
        await page.getByRole("textbox", { name: "Message" }).waitFor();
        assert.deepEqual(await boxes(page), before);
      } finally {
        await context.close();
      }
    });
  });
}

const failures = {
  "cannot be fetched": (route) => route.abort(),
  "is answered with 404": (route) => route.fulfill({ status: 404, body: "gone" }),
  "is something else": (route) => route.fulfill({ status: 200, body: "<!doctype html>" }),
};
for (const [name, fail] of Object.entries(failures)) {
  let isBroken = true;
  story(
    `a wasm that ${name} is said so, with what can be done, and trying again works`,
    {
      ...desk,
      isShut: true,
      expected: [/Failed to load (resource|module script)/],
      before: (context) =>
        // The copy inside the package, which would take its place, is lost as well.
        context.route(/\.wasm$|\/inline-wasm-/, (route) => (isBroken ? fail(route) : route.continue())),
    },
    async (page) => {
      const alert = page.getByRole("alert");
      await alert.getByText("Lockgate could not start").waitFor();
      assert.match(await alert.innerText(), /wasm/);
      assert.match(await alert.innerText(), /serve|served/);
      assert.match(await alert.innerText(), /sessions are untouched/);
      await page.screenshot({ path: `${artefacts}start-failed.png` });
      isBroken = false;
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByRole("textbox", { name: "Message" }).waitFor();
      await sayAndHear(page, "hello");
    },
  );
}

story(
  "a script that never comes is said so by the page itself, with a way to load it again",
  {
    ...desk,
    isShut: true,
    reducedMotion: "reduce",
    expected: [/Failed to load resource/],
    before: (context) => context.route("**/assets/*.js", (route) => route.abort()),
  },
  async (page) => {
    const late = page.getByText("This takes longer than it should");
    await late.waitFor({ state: "attached" });
    assert.equal(await late.isVisible(), false, "not from the start");
    await page.evaluate(() => document.getAnimations().forEach((animation) => animation.finish()));
    await late.waitFor();
    await page.unrouteAll();
    await page.context().unrouteAll();
    await page.getByRole("link", { name: "Load again" }).click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
  },
);

let isLost = true;
story(
  "what is to follow the page and does not come is said where it is missed, and trying again brings it",
  {
    ...desk,
    expected: [/Failed to load resource/],
    before: (context) =>
      context.route(/\/later-.*\.js$/, (route) => (isLost ? route.abort() : route.continue())),
  },
  async (page) => {
    const box = page.getByRole("textbox", { name: "Message" });
    const { y } = await box.boundingBox();
    await box.fill("hello");
    await page.keyboard.press("Enter");
    const alert = page.getByRole("alert").filter({ hasText: "could not be loaded" });
    await alert.waitFor();
    assert.equal((await box.boundingBox()).y, y, "the composer stays where it is");
    await page.screenshot({ path: `${artefacts}later-lost.png` });
    isLost = false;
    await alert.getByRole("button", { name: "Try again" }).click();
    await heard(page);
    await sayAndHear(page, "and again");
    assert.equal(await page.locator(".question").count(), 2, "nothing said was lost");
  },
);

story(
  "settings that cannot be used do not keep the page shut, and stay as they were",
  {
    ...desk,
    isShut: true,
    storageState: storageOf(url, {
      "lockgate.settings": { provider: "openai", preset: "other", baseUrl: "nonsense", model: "m" },
    }),
  },
  async (page) => {
    await page.getByRole("alert").getByText("baseUrl is not an address").waitFor();
    await page.screenshot({ path: `${artefacts}start-settings.png` });
    await page.getByRole("button", { name: "Start with the demo model" }).click();
    await sayAndHear(page, "hello");
    const kept = await page.evaluate(() => localStorage.getItem("lockgate.settings"));
    assert.match(kept, /nonsense/);
  },
);

story(
  "what cannot be stored because there is no room is said so, and its text is kept",
  { ...desk, storageState: storageOf(url, { "lockgate.settings": { store: "localstorage" } }) },
  async (page) => {
    await sayAndHear(page, "hello");
    await page.evaluate(() => {
      // Halves fill what is left, down to the last letters.
      for (let n = 4_000_000, at = 0; n > 0; at += 1) {
        try {
          localStorage.setItem(`junk-${at}`, "x".repeat(n));
        } catch {
          n = Math.floor(n / 2);
        }
      }
    });
    await say(page, "a thought that matters");
    const alert = page.locator(".turn").getByRole("alert");
    await alert.waitFor();
    assert.match(await alert.innerText(), /full|quota|space/i);
    const field = page.getByRole("textbox", { name: "Message" });
    assert.equal(await field.inputValue(), "a thought that matters");
    await page.screenshot({ path: `${artefacts}quota-full.png` });
    await page.evaluate(() => {
      for (const key of Object.keys(localStorage)) if (/^junk/.test(key)) localStorage.removeItem(key);
    });
    // What was not stored stands no longer in the conversation: it is said again in its place.
    await field.press("Enter");
    await answer(page).getByText("a thought that matters").waitFor();
    await heard(page);
  },
);

story(
  "a disk that is nearly full is said so in the settings",
  {
    ...desk,
    // Chromium tells no site how full its disk really is.
    before: (context) =>
      context.addInitScript(() => {
        const estimate = async () => ({ usage: 950_000, quota: 1_000_000 });
        // A page that is not secure, such as the empty one before, has none.
        if (globalThis.StorageManager) Object.defineProperty(StorageManager.prototype, "estimate", { value: estimate });
      }),
  },
  async (page) => {
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByText("950 kB used of 1 MB").waitFor();
    await page.getByText("nearly full").waitFor();
    await page.screenshot({ path: `${artefacts}quota-settings.png` });
  },
);
