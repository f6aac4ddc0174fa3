// Builds everything and serves the web UI on this machine: `npm start [-- --port N --open]`.
import { spawn } from "node:child_process";
import process from "node:process";
import { build } from "./build.mjs";
import { main, problem } from "./run.mjs";
import { serve } from "./web/serve.mjs";
import { prepare } from "./setup/setup.mjs";
import { buildWww } from "./web/www.mjs";

const usage = "use `npm start -- [--port N] [--open]`";

/** The options of the command line. */
export function readOptions(args) {
  const options = { port: 4310, open: false };
  const rest = args.flatMap((arg) =>
    arg.startsWith("--port=") ? ["--port", arg.slice(7)] : [arg],
  );
  while (rest.length > 0) {
    const arg = rest.shift();
    if (arg === "--open") options.open = true;
    else if (arg === "--port") options.port = readPort(rest.shift());
    else throw problem(`${arg} is not an option: ${usage}.`);
  }
  return options;
}

function readPort(text = "") {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw problem(`--port takes a number from 1 to 65535, not ${text || "nothing"}: ${usage}.`);
}

function openBrowser(url) {
  const openers = { darwin: ["open"], win32: ["cmd", "/c", "start", ""] };
  const [command, ...args] = openers[process.platform] ?? ["xdg-open"];
  spawn(command, [...args, url], { stdio: "ignore", detached: true })
    .on("error", () =>
      console.log(`No browser could be opened with ${command}: open ${url} yourself.`),
    )
    .unref();
}

await main(import.meta.url, async (args) => {
  const options = readOptions(args);
  await prepare(["npm", "rust", "wasm", "bindgen", "binaryen"], { quiet: true });
  await build();
  const server = await serve(await buildWww(), options.port);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, server.close);
  if (server.port !== options.port)
    console.log(`Port ${options.port} is in use, so the server uses ${server.port}`);
  if (options.open) openBrowser(server.url);
  console.log(`Lockgate is at ${server.url}`);
});
