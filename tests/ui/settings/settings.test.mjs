// The settings: the model and the test of its connection, and where sessions and keys are stored.
import assert from "node:assert/strict";
import http from "node:http";
import { after } from "node:test";
import { openProvider, speak } from "../../npm/support/provider.mjs";
import { answer, artefacts, listed, open, phone, reload, say, sayAndHear, storageOf } from "../page.mjs";

const { story, close, url } = await open();
const key = "sk-canary-5d1f0c7e";

/** Models that this account cannot use, with the answers of the provider. */
const refusals = {
  unpaid: [402, "Insufficient credits"],
  "not-here": [403, "This model is not available in your country"],
  broken: [500, "Something went wrong"],
  full: [529, "Overloaded"],
};

/** A provider with one model and one valid key. */
const provider = await openProvider(({ path, headers, body }) => {
  const given = headers.authorization ?? headers["x-api-key"] ?? headers["x-goog-api-key"] ?? "";
  if (!given.endsWith(key)) {
    return { status: 401, body: JSON.stringify({ error: { message: "Incorrect API key provided", code: "invalid_api_key" } }) };
  }
  if (path.endsWith("/models")) return { headers: json, body: JSON.stringify({ data: [{ id: "good" }, { id: "better" }] }) };
  const refusal = refusals[body.model];
  if (refusal) return { status: refusal[0], body: JSON.stringify({ error: { message: refusal[1] } }) };
  if (body.model === "dropped") return { cut: true };
  if (body.model === "cut") return { body: ["data: {}\n\n"], cut: true };
  if (body.model === "busy") return { status: 429, body: JSON.stringify({ error: { message: "Rate limit reached" } }) };
  if (path.includes("/messages")) return { body: speak.anthropic({ text: "ready" }) };
  if (path.includes("Generate") || path.includes("generate")) return { body: speak.gemini({ text: "ready" }) };
  if (body.model !== "good") {
    return { status: 404, body: JSON.stringify({ error: { message: `The model ${body.model} does not exist`, code: "model_not_found" } }) };
  }
  return { body: speak.openai({ text: "ready, says the loopback" }) };
});
const json = { "content-type": "application/json" };
// A server without CORS headers, and a server that is down.
const closedToPages = http.createServer((_, response) => response.end("{}"));
await new Promise((resolve) => closedToPages.listen(0, "127.0.0.1", resolve));
const corsUrl = `http://127.0.0.1:${closedToPages.address().port}/v1`;
const gone = await openProvider([]);
await gone.close();

after(async () => {
  await close();
  await provider.close();
  closedToPages.closeAllConnections();
  closedToPages.close();
});

const network = {
  allowed: [provider.url, gone.url, corsUrl],
  expected: [/Failed to load resource/, /blocked by CORS policy/],
};
const desk = { viewport: { width: 1200, height: 850 }, ...network };
const dialog = (page) => page.getByRole("dialog", { name: "Settings" });
const field = (page, name) => dialog(page).getByRole("textbox", { name });
const apiKey = (page) => dialog(page).getByLabel("API key");
const openSettings = (page) => page.locator(".bar").getByRole("button", { name: "Settings" }).click();
const shoot = (page, name) => page.screenshot({ path: `${artefacts}settings-${name}.png` });
const apply = async (page) => {
  await dialog(page).getByRole("button", { name: "Use these settings" }).click();
  await dialog(page).getByText("These settings are in use.").waitFor();
  await dialog(page).getByRole("button", { name: "Close settings" }).click();
  await dialog(page).waitFor({ state: "detached" });
};
const choose = async (page, { preset = "other", address = `${provider.url}/v1`, model = "good", secret = key }) => {
  await dialog(page).getByRole("combobox", { name: "Provider" }).selectOption(preset);
  await field(page, "Address").fill(address);
  await field(page, "Model").fill(model);
  if (secret) await apiKey(page).fill(secret);
};
const tested = async (page) => {
  await dialog(page).getByRole("button", { name: "Test the connection" }).click();
  const finding = dialog(page).locator(".finding:not([data-kind=asking]) strong");
  await finding.waitFor();
  return dialog(page).locator(".finding").innerText();
};

/** Everything that this browser has stored for the page. */
const written = (page) =>
  page.evaluate(async () => {
    const all = [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), document.cookie];
    for (const { name } of await indexedDB.databases()) {
      const database = await new Promise((resolve, reject) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      for (const store of database.objectStoreNames) {
        const request = database.transaction(store).objectStore(store).getAll();
        await new Promise((resolve) => (request.onsuccess = resolve));
        const asText = (_, value) => (value instanceof Uint8Array ? new TextDecoder().decode(value) : value);
        all.push(JSON.stringify(request.result, asText));
      }
      database.close();
    }
    return all.join("\n");
  });

story("a user's own model is tested and used at once, and its key is not stored", desk, async (page) => {
  await sayAndHear(page, "hello");
  await openSettings(page);
  await choose(page, {});
  assert.match(await tested(page), /^It works: answered in [\d.]+ s with “ready, says the loopback”/);
  await shoot(page, "works");
  await apply(page);
  await sayAndHear(page, "and now?");
  assert.equal(await answer(page).innerText(), "ready, says the loopback");
  assert.equal(await page.locator(".question").count(), 2, "the conversation continues");
  const all = await written(page);
  assert.match(all, /and now\?/, "the messages are stored");
  assert.doesNotMatch(all, new RegExp(key));
  assert.doesNotMatch(await page.content(), new RegExp(key));
  await reload(page);
  await say(page, "without the key");
  await page.locator(".turn").getByRole("alert").waitFor();
  await openSettings(page);
  assert.equal(await field(page, "Model").inputValue(), "good");
  assert.equal(await apiKey(page).inputValue(), "");
  await dialog(page).getByText("was not kept: type it again").waitFor();
});

story("a key is stored only with a warning, is sent only to its URL, and can be deleted", desk, async (page) => {
  await openSettings(page);
  await choose(page, {});
  await dialog(page).getByRole("checkbox", { name: "Keep the key in this browser" }).check();
  await dialog(page).getByText("Anybody who can use this browser").waitFor();
  await shoot(page, "kept-key");
  await apply(page);
  assert.match(await written(page), new RegExp(key));
  await reload(page);
  await sayAndHear(page, "with the key");
  assert.equal(await answer(page).innerText(), "ready, says the loopback");
  await openSettings(page);
  await field(page, "Address").fill("https://elsewhere.example/v1");
  assert.equal(await apiKey(page).inputValue(), "", "the key is not used for another address");
  await choose(page, {});
  assert.equal(await dialog(page).getByRole("checkbox").isChecked(), false);
  await apply(page);
  assert.doesNotMatch(await written(page), new RegExp(key));
});

const answers = [
  ["a wrong key", { secret: "sk-wrong" }, /^The key was refused/],
  ["no such model", { model: "bad" }, /^There is no model “bad” there\.\n+There are: better, good\./],
  ["a limit that is reached", { model: "busy" }, /^The provider limits the rate of requests/],
  ["an account without credit", { model: "unpaid" }, /^The provider asks for payment[^]*Insufficient credits/],
  ["an account that is not allowed", { model: "not-here" }, /^The provider knows the key but refuses access[^]*your country/],
  ["a provider with a fault", { model: "broken" }, /^The provider failed\.[^]*has an internal error \(500\): Something went wrong/],
  ["an overloaded provider", { model: "full" }, /^The provider failed\.[^]*is overloaded \(529\)/],
  ["a connection that is dropped before the answer", { model: "dropped" }, /allows this page, but the connection was lost/],
  ["a connection that is dropped during the answer", { model: "cut" }, /allows this page, but the connection was lost/],
  ["a server that is gone", { address: `${gone.url}/v1` }, /^Nothing answers at 127\.0\.0\.1:\d+\. Is it running/],
  ["a server that does not allow pages", { address: corsUrl, preset: "ollama" }, /does not allow this page \(CORS\)[^]*OLLAMA_ORIGINS=http:\/\/127/],
];
for (const [name, choices, expected] of answers) {
  story(`the connection test tells ${name} for what it is`, desk, async (page) => {
    await openSettings(page);
    await choose(page, choices);
    const finding = await tested(page);
    assert.match(finding, expected);
    assert.doesNotMatch(finding, /sk-/, "no key is shown");
    await shoot(page, name.replaceAll(" ", "-"));
  });
}

story("the connection test says that the device is offline", { ...desk, allowed: [...network.allowed, "https://models.example/"] }, async (page) => {
  await openSettings(page);
  await choose(page, {});
  assert.match(await tested(page), /^It works/);
  await page.context().setOffline(true);
  await choose(page, { address: "https://models.example/v1" });
  assert.match(await tested(page), /^This device is offline/);
});

for (const [model, expected] of [
  ["unpaid", /asks for payment \(402\): Insufficient credits/],
  ["not-here", /refuses access \(403\): This model is not available/],
]) {
  story(`in the conversation, the error of the model “${model}” has its true reason and leads to the settings`, desk, async (page) => {
    await openSettings(page);
    await choose(page, { model });
    await apply(page);
    await sayAndHear(page, "hello");
    const alert = page.locator(".turn").getByRole("alert");
    assert.match(await alert.innerText(), expected);
    assert.doesNotMatch(await alert.innerText(), /refuses the key|overloaded|apiKey/);
    await alert.getByRole("button", { name: "Settings" }).click();
    await dialog(page).waitFor();
  });
}

story("a key that was not kept is missed as soon as the page is loaded, and in the error, and both lead to the settings", desk, async (page) => {
  await openSettings(page);
  await choose(page, {});
  await apply(page);
  await sayAndHear(page, "with the key");
  const notice = page.getByText(/The key for 127\.0\.0\.1:\d+ was not kept in this browser/);
  assert.equal(await notice.count(), 0);
  await reload(page);
  await notice.waitFor();
  await shoot(page, "key-not-kept");
  await sayAndHear(page, "without the key");
  const alert = page.locator(".turn").getByRole("alert");
  assert.match(await alert.innerText(), /The key for 127\.0\.0\.1:\d+ was not kept in this browser: type it again in the settings/);
  await shoot(page, "key-not-kept-error");
  await alert.getByRole("button", { name: "Settings" }).click();
  await dialog(page).getByRole("button", { name: "Close settings" }).click();
  await page.locator(".composer").getByRole("button", { name: "Settings" }).click();
  await apiKey(page).fill(key);
  await apply(page);
  assert.equal(await notice.count(), 0);
  await alert.getByRole("button", { name: "Try again" }).click();
  await answer(page).getByText("ready, says the loopback").waitFor();
});

story("a key that is no longer to be kept is removed, also from a full localStorage", desk, async (page) => {
  await openSettings(page);
  await choose(page, {});
  await dialog(page).getByRole("checkbox", { name: "Keep the key in this browser" }).check();
  await apply(page);
  assert.match(await written(page), new RegExp(key));
  await page.evaluate(() => {
    Storage.prototype.setItem = () => {
      throw new DOMException("no room", "QuotaExceededError");
    };
  });
  await openSettings(page);
  await dialog(page).getByRole("checkbox", { name: "Keep the key in this browser" }).uncheck();
  await dialog(page).getByRole("button", { name: "Use these settings" }).click();
  await dialog(page).getByText("could not store all of them").waitFor();
  assert.doesNotMatch(await written(page), new RegExp(key));
});

for (const [preset, header] of [["anthropic", "x-api-key"], ["gemini", "x-goog-api-key"]]) {
  story(`${preset} is asked in its own language, with the key in a header`, desk, async (page) => {
    const n = provider.requests.length;
    await openSettings(page);
    await choose(page, { preset, address: `${provider.url}/v1` });
    assert.match(await tested(page), /^It works: answered in [\d.]+ s with “ready”/);
    const [request] = provider.requests.slice(n);
    assert.equal(request.headers[header], key);
    assert.ok(!request.path.includes(key));
  });
}

story("a question to an unreachable server shows the error in the conversation, and the question is kept", { ...desk, storageState: storageOf(url, { "lockgate.settings": { provider: "openai", preset: "other", baseUrl: `${gone.url}/v1`, model: "good" } }) }, async (page) => {
  await say(page, "is anybody there?");
  const alert = page.locator(".turn").getByRole("alert");
  await alert.waitFor({ timeout: 60_000 });
  assert.match(await alert.innerText(), /cannot be reached/);
  await shoot(page, "gone-in-conversation");
  await reload(page);
  assert.equal(await page.locator(".question p").innerText(), "is anybody there?");
});

story("another store has other sessions and says how durable it is, and switching back shows the old sessions", desk, async (page) => {
  await sayAndHear(page, "kept in IndexedDB");
  await openSettings(page);
  await dialog(page).getByText("May be evicted").waitFor();
  await dialog(page).getByText(/kB used of/).waitFor();
  await dialog(page).getByRole("button", { name: "Ask the browser to keep it" }).click();
  await dialog(page).getByText(/The browser (will keep it|did not agree)/).waitFor();
  await dialog(page).getByRole("combobox", { name: "Sessions are kept in" }).selectOption("memory");
  await apply(page);
  await listed(page, "kept in IndexedDB").waitFor({ state: "detached" });
  await sayAndHear(page, "kept in memory");
  await openSettings(page);
  await dialog(page).getByText("Memory only: gone when this page is closed.").waitFor();
  await shoot(page, "memory");
  await dialog(page).getByRole("combobox", { name: "Provider" }).selectOption("demo");
  await apply(page);
  await listed(page, "kept in memory").waitFor();
  await openSettings(page);
  await dialog(page).getByRole("combobox", { name: "Sessions are kept in" }).selectOption("indexeddb");
  await apply(page);
  await listed(page, "kept in IndexedDB").waitFor();
  await reload(page);
  assert.equal(await listed(page, "kept in memory").count(), 0);
});

story("older messages are summarised if the settings say so", desk, async (page) => {
  await openSettings(page);
  const number = (name) => dialog(page).getByRole("spinbutton", { name });
  await number("From so many messages on").fill("6");
  await number("Messages that stay as they are").fill("2");
  await shoot(page, "compaction");
  await apply(page);
  for (const text of ["one thing", "a long answer", "another thing", "a fourth thing"]) await sayAndHear(page, text);
  await page.getByRole("button", { name: "Inside this session" }).click();
  await page.getByText(/stands for \d+ messages/).waitFor();
});

story("a change of settings during an answer loses neither the answer nor the typed text", desk, async (page) => {
  await say(page, "a long answer");
  await answer(page).getByText(/\w/).first().waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("half a thought");
  await openSettings(page);
  await choose(page, {});
  await apply(page);
  assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "half a thought");
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  await answer(page).getByText("ready, says the loopback").waitFor({ timeout: 60_000 });
  await reload(page);
  const said = await page.locator('[role="log"]').innerText();
  assert.match(said, /finds the conversation in order/, "the running answer was not finished");
  assert.match(said, /ready, says the loopback/);
});

story("the settings are opened, changed and closed with the keyboard only", desk, async (page) => {
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await page.getByRole("button", { name: "Settings" }).focus();
  await press("Enter");
  await dialog(page).waitFor();
  const inside = () => page.evaluate(() => document.activeElement?.closest("dialog") !== null);
  assert.ok(await inside());
  await dialog(page).getByRole("combobox", { name: "Provider" }).focus();
  await page.keyboard.type("LM");
  await field(page, "Address").waitFor();
  assert.equal(await field(page, "Address").inputValue(), "http://127.0.0.1:1234/v1");
  // Keyboard shortcuts of the page behind do not work here.
  await press("Tab", "Tab", "Tab", "Tab", "n", "Escape");
  await dialog(page).waitFor({ state: "detached" });
  await openSettings(page);
  assert.equal(await dialog(page).getByRole("combobox", { name: "Provider" }).inputValue(), "demo", "the settings were applied");
  for (let n = 0; n < 30; n += 1) await press("Tab");
  assert.ok(await page.evaluate(() => !document.activeElement?.closest(".app > nav, main")), "the focus stays in the dialog");
});

story("on a phone the settings fit the screen", { ...phone, ...network }, async (page) => {
  await openSettings(page);
  await choose(page, { preset: "dashscope" });
  const wide = await page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll("dialog, dialog *")]
      .filter((box) => box.scrollWidth > box.clientWidth && getComputedStyle(box).display !== "inline" && !box.matches("input, select, option, meter"))
      .map((box) => box.className || box.tagName),
  );
  assert.deepEqual(wide, []);
  await shoot(page, "phone");
});
