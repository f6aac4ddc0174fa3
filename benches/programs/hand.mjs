// The smallest program that answers, with a tool and a provider: by hand.

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "forecast", description: "The weather", parameters: schema } }];
const run = { forecast: () => "rain" };

export async function answer(text, baseUrl) {
  const messages = [{ role: "user", content: text }];
  for (;;) {
    const said = await ask(messages, baseUrl);
    messages.push(said);
    if (said.tool_calls.length === 0) return said.content;
    for (const { id, function: called } of said.tool_calls) {
      messages.push({ role: "tool", tool_call_id: id, content: run[called.name](JSON.parse(called.arguments)) });
    }
  }
}

async function ask(messages, baseUrl) {
  const headers = { "content-type": "application/json", authorization: "Bearer a-key-of-usual-length" };
  const body = JSON.stringify({ model: "m", stream: true, messages, tools });
  const response = await fetch(`${baseUrl}/chat/completions`, { method: "POST", headers, body });
  const said = { role: "assistant", content: "", tool_calls: [] };
  let rest = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: {")) add(said, JSON.parse(line.slice(6)).choices[0].delta);
  }
  return said;
}

function add(said, { content, tool_calls: calls = [] }) {
  said.content += content ?? "";
  for (const { index, id, function: part } of calls) {
    const call = (said.tool_calls[index] ??= { id, type: "function", function: { name: part.name, arguments: "" } });
    call.function.arguments += part.arguments ?? "";
  }
}
