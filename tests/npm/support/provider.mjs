// A scripted provider for tests: real HTTP on loopback, three dialects, any bytes, cuts, delays and refusals.
import http from "node:http";

/**
 * Answers one request: `{ status, headers, body }` with a body of text or bytes, or of parts that are sent one
 * by one. A part may be a function, which is awaited. `cut` ends the connection in the middle.
 */
async function answer(response, { status = 200, headers = {}, body = "", cut = false }) {
  const type = status === 200 ? "text/event-stream" : "application/json";
  response.writeHead(status, { "content-type": type, ...headers });
  for (const piece of Array.isArray(body) ? body : [body]) {
    if (response.destroyed) return;
    if (typeof piece === "function") await piece();
    else if (piece.length > 0) await new Promise((resolve) => response.write(piece, resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (cut) response.destroy();
  else response.end();
}

/**
 * Opens a provider. `script` is a list of answers, one per request, or a function of the request `{ path, headers, body }`.
 * `requests` has the requests so far. `closed` counts connections that the client closed before the end.
 */
export async function openProvider(script) {
  const requests = [];
  const state = { closed: 0 };
  let used = 0;
  const server = http.createServer(async (request, response) => {
    // Pages on other origins may send requests.
    const cors = {
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "*",
      "access-control-expose-headers": "*",
    };
    for (const [name, value] of Object.entries(cors)) response.setHeader(name, value);
    if (request.method === "OPTIONS") return response.writeHead(204).end();
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const text = Buffer.concat(pieces).toString();
    const asked = { path: request.url, headers: request.headers, body: text && JSON.parse(text) };
    requests.push(asked);
    response.on("close", () => (state.closed += response.writableFinished ? 0 : 1));
    const step = typeof script === "function" ? await script(asked, used++) : script[used++];
    if (step === undefined) return answer(response, { status: 500, body: "the script is over" });
    await answer(response, step);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}`, port, requests, state, close };
}

/** Server-sent events of these values. */
export const sse = (values) => values.map((value) => `data: ${JSON.stringify(value)}\n\n`);

/** An answer in each dialect: thinking, text and tool calls `[{ id, name, input }]`, streamed. */
export const speak = {
  openai({ thinking, text, calls = [] }) {
    const chunk = (delta, finish = null) => ({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const values = [chunk({ role: "assistant", content: "" })];
    if (thinking) values.push(chunk({ reasoning_content: thinking }));
    for (const word of words(text)) values.push(chunk({ content: word }));
    for (const [index, { id, name, input }] of calls.entries()) {
      const [one, other] = halves(JSON.stringify(input));
      values.push(chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }));
      values.push(chunk({ tool_calls: [{ index, function: { arguments: one } }] }));
      values.push(chunk({ tool_calls: [{ index, function: { arguments: other } }] }));
    }
    values.push(chunk({}, calls.length > 0 ? "tool_calls" : "stop"));
    const usage = { prompt_tokens: 20, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 8 } };
    values.push({ id: "chatcmpl-1", object: "chat.completion.chunk", choices: [], usage });
    return [...sse(values), "data: [DONE]\n\n"];
  },

  anthropic({ thinking, text, calls = [] }) {
    const blocks = [];
    if (thinking) blocks.push([{ type: "thinking", thinking: "" }, [{ type: "thinking_delta", thinking }, { type: "signature_delta", signature: "proof" }]]);
    if (text) blocks.push([{ type: "text", text: "" }, words(text).map((word) => ({ type: "text_delta", text: word }))]);
    for (const { id, name, input } of calls) {
      const deltas = halves(JSON.stringify(input)).map((partial_json) => ({ type: "input_json_delta", partial_json }));
      blocks.push([{ type: "tool_use", id, name, input: {} }, deltas]);
    }
    const values = blocks.flatMap(([content_block, deltas], index) => [
      { type: "content_block_start", index, content_block },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]);
    const usage = { input_tokens: 12, cache_read_input_tokens: 8, output_tokens: 1 };
    const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
    return [
      { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", content: [], usage } },
      { type: "ping" },
      ...values,
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } },
      { type: "message_stop" },
    ].map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`);
  },

  gemini({ thinking, text, calls = [] }) {
    const chunk = (parts, finishReason) => ({
      candidates: [{ content: { role: "model", parts }, index: 0, ...(finishReason && { finishReason }) }],
      usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 5, cachedContentTokenCount: 8 },
    });
    const values = [];
    if (thinking) values.push(chunk([{ text: thinking, thought: true }]));
    for (const word of words(text)) values.push(chunk([{ text: word }]));
    for (const { id, name, input } of calls) {
      values.push(chunk([{ functionCall: { id, name, args: input }, thoughtSignature: `signed-${id}` }]));
    }
    values.push(chunk([{ text: "" }], "STOP"));
    return values.map((value) => `data: ${JSON.stringify(value)}\r\n\r\n`);
  },
};

const words = (text = "") => text.match(/\S*\s*/g).filter((word) => word !== "");
const halves = (text) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];
