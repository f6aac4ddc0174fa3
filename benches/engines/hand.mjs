// The baseline: a hand-written loop over an array that is parsed before a call and stringified after it.
import { MESSAGES_PER_TURN, answer, instructions, newId, question, toolInput, toolName, toolOutput } from "../script.mjs";
import { Blobs } from "./blob.mjs";

const tools = { [toolName]: async () => toolOutput };

export async function create({ script, baseUrl, blobs = new Blobs() }) {
  const model = baseUrl ? overHttp(baseUrl) : scripted(script);

  const run = async (id, text, onDelta) => {
    const messages = await blobs.load(id);
    messages.push({ role: "user", content: text });
    for (;;) {
      const said = { role: "assistant", content: "" };
      for await (const delta of model(messages)) {
        if (delta.call) (said.tool_calls ??= []).push(delta.call);
        else {
          said.content += delta.text;
          onDelta?.(delta.text);
        }
      }
      messages.push(said);
      if (!said.tool_calls) break;
      for (const call of said.tool_calls) {
        const content = await tools[call.function.name](JSON.parse(call.function.arguments));
        messages.push({ role: "tool", tool_call_id: call.id, content });
      }
    }
    await blobs.save(id, messages);
    return messages.at(-1).content;
  };

  return {
    seed: async (id, n) => blobs.save(id, history(n)),
    call: (id, text) => run(id, text),
    stream: run,
    messages: async (id) => (await blobs.load(id)).map(({ role, content }) => ({ role, text: content })),
    bytes: () => blobs.bytes(),
    close: async () => {},
  };
}

const called = () => ({ id: newId(), type: "function", function: { name: toolName, arguments: JSON.stringify(toolInput) } });

/** A history of `n` messages in the format of chat completions. */
export function history(n) {
  return Array.from({ length: n / MESSAGES_PER_TURN }, (_, at) => {
    const call = called();
    return [
      { role: "user", content: question(at) },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content: toolOutput },
      { role: "assistant", content: answer },
    ];
  }).flat();
}

function scripted(script) {
  return async function* (messages) {
    const said = await script.next(messages.at(-1).role === "tool", messages.length);
    if (said.calls) yield { call: called() };
    else if (said.pieces) for await (const text of said.pieces) yield { text };
    else yield { text: said.text };
  };
}

function overHttp(baseUrl) {
  return async function* (messages) {
    const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "system", content: instructions }, ...messages] });
    const response = await fetch(`${baseUrl}/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body });
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
        const content = JSON.parse(line.slice(6)).choices[0].delta.content;
        if (content) yield { text: content };
      }
    }
  };
}
