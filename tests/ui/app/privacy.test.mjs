// What the page says about the model, the store and privacy, in each configuration.
import assert from "node:assert/strict";
import { after } from "node:test";
import { openProvider, speak } from "../../npm/support/provider.mjs";
import { answer, artefacts, desk, open, phone, reload, sayAndHear, storageOf } from "../page.mjs";

const { story, close, url } = await open();
const provider = await openProvider(() => ({ body: speak.openai({ text: "here I am" }) }));
after(async () => {
  await close();
  await provider.close();
});

const about = (page) => page.locator(".welcome > p").innerText();
const model = (page) => page.locator(".bar .model").innerText();
const local = { provider: "openai", preset: "ollama", baseUrl: `${provider.url}/v1`, model: "qwen3" };

story("with the default settings the page says that nothing leaves the device, and names the demo model", desk, async (page) => {
  assert.match(await about(page), /kept in this browser, in IndexedDB.*demo model answers, also in this page, so nothing you write leaves your device/);
  assert.equal(await model(page), "Demo model");
});

const cases = {
  "the demo model with localStorage": [{ store: "localstorage" }, "Demo model", /in localStorage\. .*nothing you write leaves your device/],
  "the demo model in memory": [{ store: "memory" }, "Demo model", /only in memory: they are gone.*nothing you write leaves your device/],
  "a server on this machine": [local, `qwen3 · 127.0.0.1:${provider.port}`, new RegExp(`on this machine.*sent to 127\\.0\\.0\\.1:${provider.port}\\. This page cannot know`)],
  "a server on this machine with a name": [{ ...local, baseUrl: "http://localhost:11434/v1" }, "qwen3 · localhost:11434", /on this machine/],
  "a server of the local network": [{ ...local, baseUrl: "http://192.168.1.5:8080/v1" }, "qwen3 · 192.168.1.5:8080", /leave this device: they are sent to 192\.168\.1\.5:8080, and without encryption\.$/],
  "a provider": [
    { provider: "openai", preset: "openai", baseUrl: "https://api.openai.com/v1", model: "gpt-5-mini", store: "memory" },
    "gpt-5-mini · api.openai.com",
    /only in memory.*leave this device: they are sent to api\.openai\.com\.$/,
  ],
  "a host that only looks like this machine": [{ ...local, baseUrl: "https://127.0.0.1.example.com/v1" }, "qwen3 · 127.0.0.1.example.com", /leave this device/],
};
for (const [name, [choices, label, expected]] of Object.entries(cases)) {
  story(`with ${name} the page says where words go`, { ...desk, storageState: storageOf(url, { "lockgate.settings": choices }) }, async (page) => {
    assert.match(await about(page), expected);
    if (choices.provider) assert.doesNotMatch(await about(page), /nothing you write leaves|demo/);
    assert.equal(await model(page), label);
  });
}

story("after a change of the settings, the statements are those of the new model at once, also in the header of a conversation", { ...desk, allowed: [provider.url] }, async (page) => {
  await page.getByRole("button", { name: "Demo model" }).click();
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.getByRole("combobox", { name: "Provider" }).selectOption("other");
  await dialog.getByRole("textbox", { name: "Address" }).fill(`${provider.url}/v1`);
  await dialog.getByRole("textbox", { name: "Model" }).fill("m");
  await dialog.getByRole("button", { name: "Use these settings" }).click();
  await dialog.getByText("These settings are in use.").waitFor();
  await dialog.getByRole("button", { name: "Close settings" }).click();
  assert.match(await about(page), /m answers, from a server on this machine/);
  await page.screenshot({ path: `${artefacts}privacy-local.png` });
  await sayAndHear(page, "hello");
  assert.equal(await answer(page).innerText(), "here I am");
  assert.equal(await model(page), `m · 127.0.0.1:${provider.port}`);
  await reload(page);
  assert.equal(await model(page), `m · 127.0.0.1:${provider.port}`);
});

const long = { ...local, baseUrl: "https://a-very-long-name-of-a-host.of-a-provider.example.com/v1", model: "a-model-with-a-very-long-name-2026-11" };
story("on a phone a long name of a model fits the header", { ...phone, storageState: storageOf(url, { "lockgate.settings": long }) }, async (page) => {
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), phone.viewport.width);
  const right = await page.getByRole("button", { name: "Inside this session" }).evaluate((button) => button.getBoundingClientRect().right);
  assert.ok(right <= phone.viewport.width, `the last button ends at ${right}`);
  await page.screenshot({ path: `${artefacts}privacy-phone.png` });
});
