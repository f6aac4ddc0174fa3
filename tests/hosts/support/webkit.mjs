// Controls WebKitGTK's MiniBrowser through WebKitWebDriver, over the HTTP protocol of W3C WebDriver, on a display of its own.
import { startProgram } from "./program.mjs";

/** How often the end of a function in a page is asked for. The protocol lets one window run code at a time. */
const ASK_AGAIN_MS = 20;

/** Starts WebKit with this profile: `{ version, open, close, kill }`. */
export async function launchWebkit({ program, browser, display, profile }) {
  const screen = startProgram(display, ["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"], { profile });
  let driver;
  const kill = async () => {
    await driver?.kill();
    await screen.kill();
  };
  try {
    const [, number] = await screen.says(/^(\d+)\s*$/m);
    const env = { DISPLAY: `:${number}`, GDK_BACKEND: "x11", LIBGL_ALWAYS_SOFTWARE: "1", WEBKIT_DISABLE_COMPOSITING_MODE: "1", NO_AT_BRIDGE: "1" };
    const port = await freePort();
    driver = startProgram(program, [`--port=${port}`], { profile, env });
    const at = `http://127.0.0.1:${port}`;
    await driver.answers(`${at}/status`);
    const options = { "webkitgtk:browserOptions": { binary: browser, args: ["--automation"] } };
    const { sessionId, capabilities } = await send(`${at}/session`, { capabilities: { alwaysMatch: options } });
    const session = new Session(`${at}/session/${sessionId}`);
    // The first window stays open: the session ends with its last window, and other windows are opened from it.
    const first = await session.in(undefined, (command) => command("/window"));
    const close = async () => {
      await session.end();
      await kill();
    };
    return { version: `${capabilities.browserName} ${capabilities.browserVersion}`, open: (url) => openTab(session, first, url), close, kill };
  } catch (error) {
    await kill();
    throw error;
  }
}

/** The commands of a session. They are for one window at a time, so they are sent one after the other. */
class Session {
  #url;
  #window;
  #last = Promise.resolve();

  constructor(url) {
    this.#url = url;
  }

  /** Runs commands for one window, or for none. `work` gets a function that sends a command. */
  in(window, work) {
    const turn = this.#last.then(async () => {
      const command = (path, body, method) => send(`${this.#url}${path}`, body, method);
      if (window !== undefined && window !== this.#window) await command("/window", { handle: window });
      if (window !== undefined) this.#window = window;
      return work(command);
    });
    this.#last = turn.catch(() => {});
    return turn;
  }

  end() {
    return this.in(undefined, (command) => command("", undefined, "DELETE")).catch(() => {});
  }
}

async function openTab(session, first, url) {
  const { handle } = await session.in(first, (command) => command("/window/new", { type: "window" }));
  const goto = (address) => session.in(handle, (command) => command("/url", { url: address }));
  const sync = (script, ...args) => session.in(handle, (command) => command("/execute/sync", { script, args }));
  let runs = 0;
  const run = async (program) => {
    const name = `run${++runs}`;
    await sync(`const runs = (globalThis.hostRuns ??= {}); (${program})().then((value) => (runs[arguments[0]] = { value }), (error) => (runs[arguments[0]] = { error: String(error) }));`, name);
    for (;;) {
      const ended = await sync("const runs = globalThis.hostRuns; if (runs === undefined) return 'gone'; const end = runs[arguments[0]]; delete runs[arguments[0]]; return end ?? null;", name);
      if (ended === "gone") throw new Error("the page was left before the function ended");
      if (ended !== null && "error" in ended) throw new Error(ended.error);
      if (ended !== null) return ended.value;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  };
  await goto(url);
  return {
    run,
    goto,
    reload: () => session.in(handle, (command) => command("/refresh", {})),
    close: () => session.in(handle, (command) => command("/window", undefined, "DELETE")),
  };
}

async function send(url, body, method = body === undefined ? "GET" : "POST") {
  const response = await fetch(url, { method, ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }) });
  const { value } = await response.json();
  if (!response.ok) throw new Error(`WebKitWebDriver: ${value.error}: ${value.message}`);
  return value;
}

async function freePort() {
  const { createServer } = await import("node:net");
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
