// A small chat with the real `useChat`. use-chat.test.mjs bundles it into a page.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { createElement as h, useState } from "react";
import { createRoot } from "react-dom/client";

const { searchParams } = new URL(location.href);
const [api, id, headers] = [searchParams.get("api"), searchParams.get("id"), { "x-user": "alice" }];
const transport = new DefaultChatTransport({ api: `${api}/chat`, headers });
const isAnswered = (chat) => lastAssistantMessageIsCompleteWithApprovalResponses(chat) || lastAssistantMessageIsCompleteWithToolCalls(chat);

function Chat({ messages: initial }) {
  const chat = useChat({ id, messages: initial, transport, resume: true, sendAutomaticallyWhen: isAnswered });
  const { messages, status, error } = chat;
  const [text, setText] = useState("");
  const send = (event) => {
    event.preventDefault();
    setText("");
    void chat.sendMessage({ text });
  };
  // Disconnecting does not stop the call: a client that wants to stop it must tell the worker.
  const stop = async () => {
    await fetch(`${api}/chat/${id}/stop`, { method: "POST", headers: { ...headers, "content-type": "application/json" } });
    await chat.stop();
  };
  return h(
    "main",
    { "data-status": status },
    messages.map((message) => h("article", { key: message.id, "data-role": message.role }, message.parts.map((part, index) => h(Part, { key: index, part, chat })))),
    error && h("p", { className: "error" }, error.message),
    h("form", { onSubmit: send }, h("input", { value: text, onChange: (event) => setText(event.target.value) }), h("button", null, "Send")),
    h("button", { onClick: stop }, "Stop"),
    h("button", { onClick: () => void chat.regenerate() }, "Regenerate"),
  );
}

function Part({ part, chat }) {
  if (part.type === "text") return h("p", null, part.text);
  if (!part.type.startsWith("tool-")) return null;
  const { toolCallId, state, output, approval } = part;
  const answer = (approved) => () => void chat.addToolApprovalResponse({ id: approval.id, approved, reason: approved ? undefined : "not now" });
  const isMine = part.type === "tool-outside" && state === "input-available";
  return h(
    "div",
    { className: part.type, "data-state": state },
    `${part.type} ${state} ${typeof output === "string" ? output : ""}`,
    state === "approval-requested" && [h("button", { key: 1, onClick: answer(true) }, "Approve"), h("button", { key: 2, onClick: answer(false) }, "Deny")],
    isMine && h("button", { onClick: () => void chat.addToolOutput({ tool: "outside", toolCallId, output: "done in the page" }) }, "Do it"),
  );
}

const stored = await fetch(`${api}/chat/${encodeURIComponent(id)}`, { headers });
createRoot(document.getElementById("app")).render(h(Chat, { messages: await stored.json() }));
