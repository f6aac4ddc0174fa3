// A provider on loopback with the chat completions API. Its argument is the number of pieces per answer.
import http from "node:http";
import { word } from "./script.mjs";

const nDeltas = Number(process.argv[2]);
/** The number of events per write, as from real providers under load. */
const PER_WRITE = 8;

const event = (fields) => `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", ...fields })}\n\n`;
const piece = (delta, finish = null) => event({ choices: [{ index: 0, delta, finish_reason: finish }] });
// Sent only on request. Some engines count tokens themselves if they do not get the usage.
const used = event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: nDeltas, total_tokens: nDeltas + 10 } });

const server = http.createServer(async (request, response) => {
  let body = "";
  for await (const text of request.setEncoding("utf8")) body += text;
  response.setHeader("content-type", "text/event-stream");
  for (let n = 0; n < nDeltas; n += PER_WRITE) {
    const events = piece({ content: word }).repeat(Math.min(PER_WRITE, nDeltas - n));
    if (!response.write(events)) await new Promise((resolve) => response.once("drain", resolve));
  }
  const usage = JSON.parse(body).stream_options?.include_usage ? used : "";
  response.end(`${piece({}, "stop")}${usage}data: [DONE]\n\n`);
});

server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
