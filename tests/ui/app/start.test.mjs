// The start of the page: before the wasm is loaded, while it loads, and when it fails to load.
import assert from "node:assert/strict";
import http from "node:http";
import { after, test } from "node:test";
import { answer, artefacts, heard, open, phone, say, sayAndHear, storageOf } from "../page.mjs";

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

/** The same page from a server that sends half of the wasm, and the rest when the test releases it. */
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
        // Half of the first of the two files has arrived.
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
        // The copy inside the package, which would replace it, is lost too.
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
  "if a script does not load, the page says so and offers to load it again",
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
    assert.equal(await late.isVisible(), false, "the hint is hidden at the start");
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
  "if a later part of the page does not load, an error is shown in its place, and trying again loads it",
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
    assert.equal((await box.boundingBox()).y, y, "the composer does not move");
    await page.screenshot({ path: `${artefacts}later-lost.png` });
    isLost = false;
    await alert.getByRole("button", { name: "Try again" }).click();
    await heard(page);
    await sayAndHear(page, "and again");
    assert.equal(await page.locator(".question").count(), 2, "a question was lost");
  },
);

story(
  "invalid settings do not prevent the page from starting, and stay unchanged",
  {
    ...desk,
    isShut: true,
    storageState: storageOf(url, {
      "lockgate.settings": { provider: "openai", preset: "other", baseUrl: "nonsense", model: "m" },
    }),
  },
  async (page) => {
    await page.getByRole("alert").getByText("baseUrl is not an http or https URL").waitFor();
    await page.screenshot({ path: `${artefacts}start-settings.png` });
    await page.getByRole("button", { name: "Start with the demo model and IndexedDB" }).click();
    await sayAndHear(page, "hello");
    const kept = await page.evaluate(() => localStorage.getItem("lockgate.settings"));
    assert.match(kept, /nonsense/);
  },
);

story(
  "a message that cannot be stored on a full disk is reported, and its text is kept",
  { ...desk, storageState: storageOf(url, { "lockgate.settings": { store: "localstorage" } }) },
  async (page) => {
    await sayAndHear(page, "hello");
    await page.evaluate(() => {
      // Each write fills half of the remaining space, down to the last characters.
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
    // The message that was not stored is not in the conversation any more: the new message takes its place.
    await field.press("Enter");
    await answer(page).getByText("a thought that matters").waitFor();
    await heard(page);
  },
);

story(
  "the settings show that a disk is nearly full",
  {
    ...desk,
    // Chromium does not tell sites how full the disk really is.
    before: (context) =>
      context.addInitScript(() => {
        const estimate = async () => ({ usage: 950_000, quota: 1_000_000 });
        // An insecure page, such as the empty one before, does not have this API.
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
