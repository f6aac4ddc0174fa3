// What a remote agent does with answers that are not those of its worker: redirects, refusals of a caller, and unknown errors.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { packedModule } from "../support/project.mjs";

const HEADERS = { "x-api-key": "secret", authorization: "Bearer secret" };
let worker, other, remoteAgent, answer;
const heard = { worker: [], other: [] };

before(async () => {
  ({ remoteAgent } = await packedModule("lockgate/remote"));
  const serve = (name, answers) =>
    new Promise((resolve) => {
      const server = http.createServer((request, response) => {
        heard[name].push(request);
        answers(request, response);
      });
      server.listen(0, "127.0.0.1", () => resolve(server));
    });
  other = await serve("other", (_, response) => response.end("[]"));
  worker = await serve("worker", (request, response) => answer(request, response));
});

after(() => [worker, other].forEach((server) => (server.close(), server.closeAllConnections())));

const urlOf = (server) => `http://127.0.0.1:${server.address().port}`;
const agent = () => remoteAgent({ url: `${urlOf(worker)}/agent`, headers: HEADERS });

async function rejection(promise) {
  const error = await promise.then(() => undefined, (reason) => reason);
  assert.ok(error !== undefined, "it was expected to reject");
  return error;
}

test("no redirect to another origin is followed, with any status and verb", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    answer = (request, response) => response.writeHead(status, { location: `${urlOf(other)}${request.url}` }).end();
    for (const ask of [() => agent().listSessions(null), () => agent().renameSession({ sessionId: "s" }, "t"), () => agent().call("hello", { sessionId: "s" })]) {
      const error = await rejection(ask());
      assert.deepEqual([error.code, typeof error.hint], ["OPTIONS", "string"]);
    }
  }
  assert.deepEqual(heard.other, [], "the other origin was asked");
});

test("a redirect within the origin is followed with the headers, and a ring of redirects ends", async () => {
  answer = (request, response) => (request.url.startsWith("/agent/") ? response.writeHead(307, { location: request.url.replace("/agent/", "/new/") }).end() : response.end('[{ "sessionId": "s" }]'));
  heard.worker.length = 0;
  assert.deepEqual(await agent().listSessions(null), [{ sessionId: "s" }]);
  assert.equal(heard.worker.at(-1).headers["x-api-key"], "secret");
  answer = (request, response) => response.writeHead(307, { location: request.url }).end();
  assert.equal((await rejection(agent().listSessions(null))).code, "OPTIONS");
});

test("401 and 403 of authenticate are UNAUTHORIZED and FORBIDDEN, whatever their body says", async () => {
  const bodies = ["who are you?", "", "<html>", '{ "error": "no" }', '{ "code": "ID_INVALID", "message": "no" }', '{ "code": "WHO", "message": "no" }', "null"];
  for (const [status, code] of [[401, "UNAUTHORIZED"], [403, "FORBIDDEN"]]) {
    for (const body of bodies) {
      answer = (_, response) => response.writeHead(status).end(body);
      for (const ask of [() => agent().listSessions(null), () => agent().call("hello", { sessionId: "s" })]) {
        const error = await rejection(ask());
        assert.deepEqual([error.code, error.status, error.retryable, typeof error.hint], [code, status, false, "string"]);
      }
    }
  }
  answer = (_, response) => response.writeHead(401).end('{ "code": "MODEL_AUTH", "message": "the provider refuses the key", "status": 401 }');
  assert.equal((await rejection(agent().compact({ sessionId: "s" }))).code, "MODEL_AUTH", "the provider's refusal is another one");
});

test("an error code that this version does not know keeps its code and has a status", async () => {
  answer = (_, response) => response.writeHead(418).end('{ "code": "TEAPOT", "message": "no coffee", "status": 418, "retryable": true }');
  const error = await rejection(agent().listSessions(null));
  assert.deepEqual([error.code, error.status, error.retryable, error.message], ["TEAPOT", 418, true, "no coffee"]);
  const event = { type: "error", error: { code: "TEAPOT", message: "no coffee", retryable: true }, slot: { sessionId: "s" }, callId: "c", seq: 0, at: "" };
  answer = (_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(`id: 0\ndata: ${JSON.stringify(event)}\n\n`);
  const failed = await rejection(agent().call("hello", { sessionId: "s" }));
  assert.deepEqual([failed.code, failed.status, failed.retryable], ["TEAPOT", 500, true]);
  for (const name of ["toString", "__proto__"]) {
    answer = (_, response) => response.writeHead(500).end(JSON.stringify({ code: name, message: "x" }));
    assert.equal((await rejection(agent().listSessions(null))).status, 503);
  }
});

test("every request that changes something says that it is JSON", async () => {
  answer = (_, response) => response.end("null");
  heard.worker.length = 0;
  await agent().deleteSession({ sessionId: "s" });
  await agent().setPermissionMode({ sessionId: "s" }, "default");
  assert.deepEqual(heard.worker.map(({ method, headers }) => [method, headers["content-type"]]), [["DELETE", "application/json"], ["PUT", "application/json"]]);
});
