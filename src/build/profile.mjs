// Records which functions a page needs to start, by running a page: `npm run profile`, then `npm run build`.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { build, glueOf } from "./build.mjs";
import { glueFactory } from "./package/glue.mjs";
import { inRoot, main, problem, step } from "./run.mjs";
import { sealed } from "./package/seal.mjs";
import { prepare } from "./setup/setup.mjs";
import { writeProfile } from "./wasm/profile.mjs";
import { instrumented } from "./wasm/split.mjs";

const folder = inRoot("target/profile");
const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

// Writes a copy of the package whose wasm reports every function that it enters.
async function writeInstrumented() {
  const { default: binaryen } = await import("binaryen");
  const glue = glueOf();
  const { wasm, names } = instrumented(binaryen, fs.readFileSync(path.join(glue, "core_bg.wasm")));
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(inRoot("dist"), folder, { recursive: true });
  const recording = "rest: fetchRest, hit: (n) => (globalThis.hits ??= new Set()).add(n)";
  const script = glueFactory(fs.readFileSync(path.join(glue, "core.js"), "utf8"), "profile");
  fs.writeFileSync(path.join(folder, "core.js"), script.replace("rest: fetchRest", recording));
  fs.writeFileSync(path.join(folder, "page.wasm"), sealed(wasm, "profile"));
  return names;
}

const chunk = (delta, finish = null) => ({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] });
const usage = { ...chunk({}), choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } };
const call = (call) => chunk({ tool_calls: [{ index: 0, ...call }] });

/** A chat-completions server with the answers that usual.mjs expects. */
export async function provider(request, response) {
  let body = "";
  for await (const part of request) body += part;
  const last = JSON.parse(body).messages.at(-1);
  answer(last.role === "user" ? JSON.stringify(last.content) : "", response);
}

function answer(said, response) {
  const refusal = '{"error":{"message":"no","type":"invalid_request_error"}}';
  if (said.includes("Refuse") && !said.includes("again")) return response.writeHead(400, { "content-type": "application/json" }).end(refusal);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (...chunks) => chunks.forEach((each) => response.write(`data: ${JSON.stringify(each)}\n\n`));
  if (said.includes("nothing") && !said.includes("Refuse")) return send(chunk({ role: "assistant", content: "…" }));
  if (said.includes("weather")) {
    send(chunk({ role: "assistant", content: null }), call({ id: "t1", type: "function", function: { name: "weather", arguments: "" } }));
    send(call({ function: { arguments: '{"city":' } }), call({ function: { arguments: '"Paris"}' } }), chunk({}, "tool_calls"), usage);
  } else {
    send(chunk({ role: "assistant", content: "Hel" }), chunk({ content: "lo." }), chunk({}, "stop"), usage);
  }
  return response.end("data: [DONE]\n\n");
}

async function serve(request, response) {
  const { pathname } = new URL(request.url, "http://any");
  if (pathname === "/") return response.setHeader("content-type", "text/html").end('<!doctype html><link rel="icon" href="data:,">');
  if (pathname.startsWith("/v1/")) return provider(request, response);
  // Never answered: code that waits for the rest is not part of the recording.
  if (pathname.endsWith("/rest.wasm")) return undefined;
  const file = pathname === "/usual.mjs" ? inRoot("src/build/wasm/usual.mjs") : path.join(folder, pathname.replace(/^\/dist\//, ""));
  if (!fs.existsSync(file)) return response.writeHead(404).end();
  return response.setHeader("content-type", types[path.extname(file)] ?? "text/plain").end(fs.readFileSync(file));
}

// The CPU throttling of each visit. Different speeds change the order in which things happen.
const THROTTLING_RATES = [1, 1, 2, 4, 8, 1, 1, 2, 1, 1, 1, 1];

// Visits the page several times. Returns the numbers of all functions that were entered.
async function visit(executablePath) {
  const { chromium } = await import("playwright-core");
  const { launchOptions } = await import("../../tests/chromium/support/options.mjs");
  const server = http.createServer((request, response) => void serve(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ ...launchOptions(), executablePath });
  try {
    const page = await (await browser.newContext()).newPage();
    const devtools = await page.context().newCDPSession(page);
    const entered = new Set();
    for (const rate of THROTTLING_RATES) {
      await devtools.send("Emulation.setCPUThrottlingRate", { rate });
      await page.goto(`http://127.0.0.1:${server.address().port}/`);
      const story = () => import("/usual.mjs").then(({ usual }) => usual()).then((saw) => ({ saw, hits: [...globalThis.hits] }));
      const { saw, hits } = await page.evaluate(story);
      hits.forEach((hit) => entered.add(hit));
      console.log(`${entered.size} functions so far; the page reports ${JSON.stringify(saw)}`);
    }
    return entered;
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}

await main(import.meta.url, async () => {
  const { chromium, chromiumMissing } = await prepare(["chromium"], { quiet: true });
  if (!chromium) throw problem(chromiumMissing);
  await build();
  const names = await step("writing the instrumented wasm", writeInstrumented);
  const entered = await step("visiting the page", () => visit(chromium));
  writeProfile([...entered].map((hit) => names[hit]));
  console.log(`${entered.size} of ${names.length} functions are needed to start a page: run \`npm run build\` to split the wasm by this profile.`);
});
