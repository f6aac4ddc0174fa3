// What people usually do in the first moments of a page, for the profile: it runs in the page, beside the package.
import { createAgent, customModel, openai, tool } from "/dist/entry/browser.js";

const weather = tool({
  name: "weather",
  description: "Tells the weather of a city.",
  inputSchema: { type: "object", properties: { city: { type: "string", description: "its name" }, days: { type: "integer" } }, required: ["city"] },
  execute: ({ city }) => ({ city, sky: "clear", degrees: 21 }),
});

/** Talks with an agent for a while; the answer says what it saw, so that whoever asked can see that all went well. */
export async function usual() {
  const model = openai({ baseUrl: `${location.origin}/v1`, model: "m", apiKey: "a-key" });
  const agent = await createAgent({ name: "helper", systemPrompt: "You are brief.", model, tools: [weather] });
  const slot = { sessionId: "s1" };
  let events = 0;
  const leave = agent.subscribe(slot, () => (events += 1));
  const said = [];
  for (const question of ["Hello!", "How is the weather in Paris?", "Thank you."]) said.push(await streamed(agent.stream(question, slot)));
  said.push((await agent.call("Hello!", { userId: "alice", sessionId: "s2" })).text);
  const stopped = agent.stream("Say nothing.", slot);
  await stopped[Symbol.asyncIterator]().next();
  stopped.stop();
  said.push((await stopped.result).reason);
  said.push(await agent.call("Hello!", { sessionId: "" }).catch(({ code }) => code));
  said.push(await agent.call("Refuse.", slot).catch(({ code }) => code));
  said.push((await agent.call("Hello again.", slot)).text);
  const sessions = await agent.listSessions(null);
  const messages = await agent.history(slot);
  leave();
  const own = await createAgent({ name: "own", model: customModel({ id: "own", generate: words }) });
  said.push(await streamed(own.stream("Hello!", slot)));
  return { said, sessions: sessions.map(({ title }) => title), messages: messages.length, heard: events > 0 };
}

async function streamed(call) {
  let text = "";
  for await (const event of call) if (event.type === "text-delta") text += event.delta;
  await call.result;
  return text;
}

async function* words() {
  yield { type: "text", text: "two " };
  yield { type: "text", text: "words" };
}
