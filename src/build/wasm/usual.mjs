// The usual first actions of a user, for the profile. Runs in the page, with the package.
import { createAgent, customModel, demoModel, openai, tool } from "/dist/entry/browser.js";

const weather = tool({
  name: "weather",
  description: "Tells the weather of a city.",
  inputSchema: { type: "object", properties: { city: { type: "string", description: "its name" }, days: { type: "integer" } }, required: ["city"] },
  execute: ({ city }) => ({ city, sky: "clear", degrees: 21 }),
});

/** Runs some calls. Returns what it saw, so that the output of `npm run profile` shows whether everything worked. */
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
  const demo = await createAgent({ name: "demo", model: demoModel() });
  said.push((await demo.call("Hello there", { sessionId: "s3" })).reason);
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
