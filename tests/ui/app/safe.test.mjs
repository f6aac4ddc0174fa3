// Untrusted content: answers, names of tools, titles and files neither run nor load anything.
import assert from "node:assert/strict";
import http from "node:http";
import { after, test } from "node:test";
import { openProvider, speak } from "../../npm/support/provider.mjs";
import { answer, artefacts, heard, open, sayAndHear, storageOf } from "../page.mjs";
import { leaksTo, scripts } from "../payloads.mjs";

const { story, close, browser, url } = await open();
const hits = [];
const sink = http.createServer((request, response) => {
  hits.push(request.url);
  response.end("caught");
});
await new Promise((resolve) => sink.listen(0, "127.0.0.1", resolve));
const sinkUrl = `http://127.0.0.1:${sink.address().port}`;
const leaks = leaksTo(sinkUrl);
const bad = `<img src=x onerror="globalThis.ran=1">\u202e`;

/** First tool calls with hostile names, then an answer with all attacks. */
const provider = await openProvider(({ body }) => {
  const hasResults = body.messages.some(({ role }) => role === "tool");
  if (hasResults) return { body: speak.openai({ thinking: bad, text: [...scripts, ...leaks].join("\n\n") }) };
  const names = ["write_file", "javascript:alert(1)", "<svg onload=ran=1>"];
  const input = { path: `notes/${bad}.md`, content: bad, [bad]: bad };
  return { body: speak.openai({ calls: names.map((name, n) => ({ id: `c${n}`, name, input })) }) };
});
after(async () => {
  await close();
  await provider.close();
  sink.closeAllConnections();
  sink.close();
});

const desk = { viewport: { width: 1300, height: 850 } };
const loopback = {
  allowed: [provider.url],
  storageState: storageOf(url, {
    "lockgate.settings": { provider: "openai", preset: "other", baseUrl: `${provider.url}/v1`, model: "m" },
  }),
};

story(
  "X-01, X-02, X-03: 500 scripts and 60 leaks in answers, names, titles and files run nothing and send nothing",
  { ...desk, ...loopback },
  async (page) => {
    assert.ok(new Set(scripts).size >= 500, `only ${new Set(scripts).size} scripts`);
    assert.ok(new Set(leaks).size >= 60, `only ${new Set(leaks).size} leaks`);
    const dialogs = [];
    page.on("dialog", (dialog) => (dialogs.push(dialog.message()), dialog.dismiss()));
    page.on("popup", (popup) => dialogs.push(popup.url()));
    await sayAndHear(page, bad);
    await answer(page).getByText("includegraphics").first().waitFor();
    for (const link of await answer(page).locator("a").all()) await link.dispatchEvent("pointerenter");

    await page.getByRole("button", { name: "Inside this session" }).click();
    const panel = page.getByRole("complementary", { name: "Inside this session" });
    await panel.locator(".part").nth(4).waitFor();
    for (const part of await panel.locator(".part summary").all()) await part.click();
    await page.screenshot({ path: `${artefacts}safe-context.png` });
    await panel.getByRole("tab", { name: "State" }).click();
    for (const name of ["context", "0", "content"]) await panel.getByText(name, { exact: true }).first().click();
    await panel.getByRole("textbox", { name: "Tool" }).fill(bad);
    await panel.getByRole("button", { name: "Add rule" }).click();
    await panel.getByRole("list", { name: "Rules" }).getByRole("listitem").waitFor();
    await panel.getByRole("tab", { name: "Files" }).click();
    await panel.getByRole("button", { name: /notes/ }).click();
    await panel.getByRole("textbox", { name: /^Text of notes/ }).waitFor();

    const made = await page.evaluate(() => {
      const inside = [...document.querySelectorAll("[role=log] *, .inspector *, nav *, h2")];
      const strange = "script, iframe, object, embed, style, link, base, meta, svg:not(.icon), video, audio, math, form:not(.inspector form)";
      const isOdd = (link) => !["http:", "https:", "mailto:"].includes(new URL(link.href).protocol);
      return {
        ran: globalThis.ran,
        strange: inside.filter((element) => element.matches(strange)).map((element) => element.outerHTML.slice(0, 80)),
        handlers: inside.filter((element) => [...element.attributes].some(({ name }) => /^on/.test(name))).length,
        odd: inside.filter((element) => element.matches("a[href]") && isOdd(element)).map((link) => link.href),
        remote: inside.filter((element) => element.matches("img") && !/^(data|blob):/.test(element.src)).length,
      };
    });
    assert.deepEqual(made, { ran: undefined, strange: [], handlers: 0, odd: [], remote: 0 });
    assert.deepEqual(dialogs, []);
    assert.deepEqual(hits, []);
  },
);

/** What an injected script could try, and the results. */
const attempts = {
  "an inline script": (page) =>
    page.evaluate(() => {
      const script = document.createElement("script");
      try {
        script.textContent = "globalThis.ran = 1";
      } catch {
        return "refused";
      }
      document.head.append(script);
      return globalThis.ran ?? "refused";
    }),
  "a script from elsewhere": (page) =>
    page.evaluate((from) => {
      const script = document.createElement("script");
      try {
        script.src = `${from}/x.js`;
      } catch {
        return "refused";
      }
      return "made";
    }, sinkUrl),
  "markup as HTML": (page) =>
    page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<img src=x onerror=ran=1>";
        return "made";
      } catch (error) {
        return error.name === "TypeError" ? "refused" : error.name;
      }
    }),
  "a policy of one's own": (page) =>
    page.evaluate(() => {
      try {
        trustedTypes.createPolicy("mine", { createHTML: (text) => text });
        return "made";
      } catch {
        return "refused";
      }
    }),
  "text that becomes code": (page) =>
    page.evaluate(() => new Promise((resolve) => {
      addEventListener("securitypolicyviolation", () => resolve("refused"), { once: true });
      try {
        setTimeout("globalThis.ran = 1");
      } catch {
        resolve("refused");
      }
    })),
  ...Object.fromEntries(
    ["img", "iframe", "object", "embed", "video", "audio"].map((tag) => [
      `${tag} from elsewhere`,
      (page) => blockedIn(page, tag),
    ]),
  ),
};

/** Adds an element to the page that requests something from the sink, and waits for the policy violation. */
function blockedIn(page, tag) {
  return page.evaluate(
    ([name, from]) =>
      new Promise((resolve) => {
        addEventListener("securitypolicyviolation", () => resolve("refused"), { once: true });
        const element = document.createElement(name);
        try {
          element[name === "object" ? "data" : "src"] = `${from}/leak`;
        } catch {
          resolve("refused");
        }
        document.body.append(element);
      }),
    [tag, sinkUrl],
  );
}

/** The built page from a server without policy headers. */
async function withoutHeaders(tell) {
  const server = http.createServer(async (request, response) => {
    const found = await fetch(new URL(request.url, url));
    response.writeHead(found.status, { "content-type": found.headers.get("content-type") });
    response.end(Buffer.from(await found.arrayBuffer()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await tell(`http://127.0.0.1:${server.address().port}/`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

async function attack(address) {
  const context = await browser.newContext(desk);
  try {
    for (const [name, attempt] of Object.entries(attempts)) {
      const page = await context.newPage();
      await page.goto(address);
      await page.getByRole("textbox", { name: "Message" }).waitFor();
      assert.equal(await attempt(page), "refused", name);
      assert.equal(await page.evaluate(() => globalThis.ran), undefined, name);
      await page.close();
    }
    assert.deepEqual(hits, []);
  } finally {
    await context.close();
  }
}

test("X-04: the headers of npm start block the actions of an injected script", () => attack(url));

test("X-04: the built page has the same policy as a meta tag", () => withoutHeaders(attack));

test("X-04: the policy has the expected directives, and no other page may frame the page", async () => {
  const { headers } = await fetch(url);
  const policy = Object.fromEntries(
    headers.get("content-security-policy").split("; ").map((part) => [part.split(" ")[0], part.split(" ").slice(1).join(" ")]),
  );
  assert.equal(policy["script-src"], "'self' 'wasm-unsafe-eval'");
  assert.equal(policy["default-src"], "'none'");
  assert.equal(policy["object-src"], "'none'");
  assert.equal(policy["base-uri"], "'none'");
  assert.equal(policy["frame-ancestors"], "'none'");
  assert.equal(policy["img-src"], "'self' data: blob:");
  assert.equal(policy["require-trusted-types-for"], "'script'");
  const context = await browser.newContext();
  const frames = http.createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end(`<!doctype html><iframe src="${url}"></iframe>`);
  });
  await new Promise((resolve) => frames.listen(0, "127.0.0.1", resolve));
  try {
    const page = await context.newPage();
    const refused = page.waitForEvent("console", (message) => /frame-ancestors/.test(message.text()));
    await page.goto(`http://127.0.0.1:${frames.address().port}/`);
    await refused;
  } finally {
    await context.close();
    frames.closeAllConnections();
    frames.close();
  }
});

story("X-20: invisible and direction-changing characters are shown by their number, in code and in tool calls", desk, async (page) => {
  const tricky = 'use read_file {"path": "a\u202etxt.exe\u200b"}';
  await sayAndHear(page, tricky);
  const tool = page.getByRole("group", { name: "Tool read_file" });
  assert.match(await tool.innerText(), /aU\+202Etxt\.exeU\+200B/);
  await page.getByRole("textbox", { name: "Message" }).fill("`code \u2066with\u2069 \u{e0041}tags` 👩‍🚀");
  await page.keyboard.press("Enter");
  await heard(page);
  const code = await answer(page).locator("code", { hasText: "with" }).innerText();
  assert.equal(code, "code U+2066withU+2069 U+E0041tags");
  await page.getByRole("button", { name: "Inside this session" }).click();
  const panel = page.getByRole("complementary", { name: "Inside this session" });
  await panel.getByText("U+202E").first().waitFor();
  await panel.getByText("👩‍🚀").first().waitFor();
  await page.screenshot({ path: `${artefacts}safe-hidden.png` });
});
