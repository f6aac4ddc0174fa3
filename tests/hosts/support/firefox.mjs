// Controls Firefox over WebDriver BiDi, on the port that `--remote-debugging-port` opens. It needs no other driver.
import WebSocket from "ws";
import { startProgram } from "./program.mjs";

/** Starts Firefox with this profile: `{ version, open, close, kill }`. */
export async function launchFirefox({ program, profile }) {
  const firefox = startProgram(program, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "about:blank"], { profile });
  try {
    const [, address] = await firefox.says(/WebDriver BiDi listening on (ws:\/\/\S+)/);
    const { send, closed } = await connect(`${address}/session`);
    const { capabilities } = await send("session.new", { capabilities: {} });
    const close = async () => {
      await Promise.race([send("browser.close"), closed]).catch(() => {});
      await firefox.end();
    };
    return { version: `${capabilities.browserName} ${capabilities.browserVersion}`, open: (url) => openTab(send, url), close, kill: () => firefox.kill() };
  } catch (error) {
    await firefox.kill();
    throw error;
  }
}

/** Messages are JSON; each has a number that its answer repeats. */
async function connect(url) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const waiting = new Map();
  let last = 0;
  socket.on("message", (text) => {
    const { id, result, error, message } = JSON.parse(text);
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error) reject?.(new Error(`${error}: ${message}`));
    else resolve?.(result);
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  void closed.then(() => waiting.forEach(({ reject }) => reject(new Error("the browser is gone"))));
  socket.on("error", () => {});
  const send = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, method, params }));
    });
  return { send, closed };
}

async function openTab(send, url) {
  const { context } = await send("browsingContext.create", { type: "window" });
  const goto = (address) => send("browsingContext.navigate", { context, url: address, wait: "complete" });
  const run = async (program) => {
    const answer = await send("script.callFunction", { functionDeclaration: program, awaitPromise: true, target: { context } });
    if (answer.type === "exception") throw new Error(answer.exceptionDetails.text);
    return answer.result.value;
  };
  await goto(url);
  return {
    run,
    goto,
    reload: () => send("browsingContext.reload", { context, wait: "complete" }),
    close: () => send("browsingContext.close", { context }),
  };
}
