// One conversation with tools, for Node, pages and edge workers: its final state, and everything that it showed.

/** Runs the conversation over a dialect. Returns its final AgentState and all visible text. */
export async function converse(lockgate, { dialect, url, key, store }) {
  const { createAgent, tool } = lockgate;
  const shown = [];
  const weather = tool({
    name: "weather",
    description: "The weather of a city",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    execute: ({ city }) => (city === "Oslo" ? "rain" : "sun"),
  });
  const model = lockgate[dialect]({ model: "m-1", baseUrl: `${url}/${dialect}`, apiKey: key, headers: { "x-team": `team-${key}` } });
  const options = { name: `echo-${dialect}`, model, tools: [weather], retries: { attempts: 2, initialMs: 1 } };
  const agent = await createAgent({ ...options, ...(store && { store }) });
  const slot = { sessionId: "s", userId: "alice" };
  for (const input of ["Weather?", "Say the key.", "Refuse.", "Redirect.", "Bye."]) {
    const call = agent.stream(input, slot);
    try {
      for await (const event of call) shown.push(event);
    } catch (error) {
      const { code, message, hint, stack, cause } = error;
      shown.push({ code, message, hint, stack, cause: String(cause), causeStack: String(cause?.stack) });
    }
  }
  const state = await agent.getAgentState(slot);
  shown.push(state, await agent.history(slot), await agent.exportSession(slot), await agent.listSessions("alice"));
  await agent.close();
  return { state, shown: JSON.stringify(shown) };
}

/** The answers of the provider: they contain every secret that the provider got, in every form. */
export function echo(speak) {
  const turns = new Map();
  return ({ path, headers, body }) => {
    const dialect = path.split("/")[1];
    const sent = headers.authorization?.slice("Bearer ".length) ?? headers["x-api-key"] ?? headers["x-goog-api-key"];
    const forms = `${sent} ${encodeURIComponent(sent)} ${btoa(sent)} ${btoa(`x${sent}`)} ${btoa(`user:${sent}`)} ${headers["x-team"]}`;
    const asked = JSON.stringify(body);
    const n = turns.get(dialect) ?? 0;
    turns.set(dialect, n + 1);
    const with_ = (answer) => ({ ...answer, headers: { "x-echo": sent, ...answer.headers } });
    if (n === 0) return with_({ status: 429, headers: { "retry-after": sent }, body: `{"error":{"message":"slow down, ${sent}"}}` });
    if (asked.includes("Bye.")) return with_({ body: speak[dialect]({ text: "Bye." }) });
    if (asked.includes("Redirect.")) return with_({ status: 302, headers: { location: `http://127.0.0.1:1/?key=${encodeURIComponent(sent)}` } });
    if (asked.includes("Refuse.")) return with_({ status: 400, body: JSON.stringify({ error: { message: `bad key ${forms}` } }) });
    // Each byte is sent on its own, so that every secret is cut at every position.
    if (asked.includes("Say the key.")) return with_({ body: [...Buffer.from(speak[dialect]({ text: forms }).join(""))].map((byte) => Buffer.of(byte)) });
    if (asked.includes("rain")) return with_({ body: speak[dialect]({ text: "Rain and sun." }) });
    const calls = ["Oslo", "Rome"].map((city, index) => ({ id: `call_${index}`, name: "weather", input: { city } }));
    return with_({ body: speak[dialect]({ thinking: "Two cities.", text: "Let me look. ", calls }) });
  };
}

/** A state without random values, times and values of the provider. */
export function bare(state) {
  const ids = new Map();
  const numbered = (id) => ids.get(id) ?? (ids.set(id, `id-${ids.size}`), ids.get(id));
  const left = JSON.stringify(state, (name, value) => {
    if (["at", "revision", "seconds", "provider", "signature"].includes(name)) return undefined;
    return name === "id" ? numbered(value) : value;
  });
  return JSON.parse(left);
}

/** Every form in which a key could appear. */
export function formsOf(key) {
  const shifted = ["", "x", "xy"].map((before) => btoa(before + key).slice(before.length + 1).replace(/=+$/, "").slice(0, -1));
  return [key, encodeURIComponent(key), btoa(key), ...shifted, ...shifted.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))];
}
