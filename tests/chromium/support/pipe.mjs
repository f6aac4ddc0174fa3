// A browser that is controlled through its own pipe. Playwright keeps every page visible, and browsers do not freeze visible pages.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { launchOptions } from "./browser.mjs";

/** Starts a browser with its own profile: `{ open, close }`. */
export async function launch() {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-profile-"));
  const { executablePath, args } = launchOptions();
  const flags = [...args, "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"];
  const browser = spawn(executablePath, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const send = connect(browser.stdio[3], browser.stdio[4]);
  const close = async () => {
    const ended = once(browser, "exit");
    await send("Browser.close").catch(() => browser.kill());
    await ended;
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  };
  return { open: (url) => open(send, url), close, kill: () => browser.kill("SIGKILL") };
}

/** Messages are JSON with a zero byte between them; each has a number that its answer repeats. */
function connect(output, input) {
  const waiting = new Map();
  let last = 0;
  let rest = "";
  input.setEncoding("utf8");
  input.on("data", (text) => {
    const messages = (rest + text).split("\0");
    rest = messages.pop();
    for (const message of messages.map((each) => JSON.parse(each))) {
      const { resolve, reject } = waiting.get(message.id) ?? {};
      waiting.delete(message.id);
      if (message.error) reject?.(new Error(message.error.message));
      else resolve?.(message.result);
    }
  });
  input.on("close", () => waiting.forEach(({ reject }) => reject(new Error("the browser is gone"))));
  return (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      output.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
}

/** A page, with methods to run code, freeze, resume, crash and close it. */
async function open(send, url) {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const tell = (method, params) => send(method, params, sessionId);
  await tell("Page.enable");
  await tell("Page.navigate", { url });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await tell("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const arrived = async (url) => {
    const isThere = `location.href === ${JSON.stringify(url)} && document.readyState === "complete"`;
    // A page that navigates may never answer, or may be closed.
    while (!(await evaluate(isThere).catch(() => false)));
  };
  await arrived(url);
  const live = (state) => tell("Page.setWebLifecycleState", { state });
  return {
    evaluate,
    go: async (to) => {
      await tell("Page.navigate", { url: to });
      await arrived(to);
    },
    back: async () => {
      await tell("Runtime.evaluate", { expression: "history.back()" });
      await arrived(url);
    },
    freeze: () => live("frozen"),
    thaw: () => live("active"),
    // No answer comes, because the page is closed.
    crash: () => void tell("Page.crash").catch(() => {}),
    close: () => send("Target.closeTarget", { targetId }),
  };
}
