// Serves a folder on this machine only, with the headers of the web UI.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { policy } from "./policy.mjs";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".webp": "image/webp",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
  ".md": "text/plain; charset=utf-8",
};

const headers = {
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const host = "127.0.0.1";
const portsTried = 50;

/**
 * Serves `folder` on the first free port from `port` on (0: any port). Returns `{ url, port, close }`. `contentPolicy` is the
 * Content-Security-Policy of the pages; the default is the web UI's.
 */
export async function serve(folder, port = 0, contentPolicy = policy) {
  const inside = fs.realpathSync(folder);
  const server = http.createServer((request, response) => {
    response.setHeader("content-security-policy", contentPolicy);
    answer(inside, request, response);
  });
  const taken = await listen(server, port);
  return {
    url: `http://${host}:${taken}/`,
    port: taken,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

async function listen(server, port) {
  const last = port === 0 ? 0 : Math.min(port + portsTried, 65_535);
  for (let next = port; ; next += 1) {
    try {
      return await listenOn(server, next);
    } catch (error) {
      if (error.code !== "EADDRINUSE" || next >= last) throw error;
    }
  }
}

function listenOn(server, port) {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve(server.address().port);
    });
  });
}

function answer(folder, request, response) {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { ...headers, allow: "GET, HEAD" }).end();
    return;
  }
  const file = find(folder, request.url ?? "/");
  if (!file) {
    response.writeHead(404, { ...headers, "content-type": types[".txt"] });
    response.end(request.method === "HEAD" ? undefined : "not found\n");
    return;
  }
  const type = types[path.extname(file).toLowerCase()] ?? "application/octet-stream";
  response.writeHead(200, {
    ...headers,
    "cache-control": cacheControl(folder, file),
    "content-type": type,
    "content-length": fs.statSync(file).size,
  });
  if (request.method === "HEAD") response.end();
  else
    fs.createReadStream(file)
      .on("error", () => response.destroy())
      .pipe(response);
}

// Files below assets/ have a hash in their name, so a changed file gets another name.
function cacheControl(folder, file) {
  const isHashed = file.startsWith(path.join(folder, "assets") + path.sep);
  return isHashed ? "public, max-age=31536000, immutable" : "no-cache";
}

// The file for a request, or null. Real paths are compared, so neither `..` nor a link leads out of the folder.
function find(folder, url) {
  try {
    const asked = decodeURIComponent(url.split(/[?#]/, 1)[0]);
    let file = fs.realpathSync(path.join(folder, asked));
    if (fs.statSync(file).isDirectory()) file = fs.realpathSync(path.join(file, "index.html"));
    return file.startsWith(folder + path.sep) && fs.statSync(file).isFile() ? file : null;
  } catch {
    return null;
  }
}
