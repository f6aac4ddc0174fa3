// A conversation that starts in a page, continues in Node over Redis, and returns to the page.
import assert from "node:assert/strict";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { createClient } from "redis";
import { project } from "../../npm/support/project.mjs";
import { startRedis, withoutRedis } from "../../npm/support/servers.mjs";
import { story, within } from "../support/browser.mjs";

const slot = { userId: "alice", sessionId: "s" };

const importDist = async (file) =>
  import(pathToFileURL(path.join(await project(), "node_modules/lockgate/dist", file)).href);

/** The part of a state that must be the same everywhere. */
const kept = ({ context, summary, tasks_context, permission_context, plan_mode_context, tool_context }) =>
  ({ context, summary, tasks_context, permission_context, plan_mode_context, tool_context });

story(
  "a conversation moves from the browser to Node on Redis and back with the same messages, tasks and summary",
  async ({ page }) => {
    const begun = await within(page, async ({ createAgent, echo }, slot) => {
      const agent = await createAgent({ name: "helper", model: echo("in the page: ") });
      await agent.call("one", slot);
      const state = await agent.getAgentState(slot);
      const tasks = [{ id: "t1", subject: "travel", state: "in_progress", priority: "high" }];
      await agent.putAgentState(slot, { ...state, tasks_context: { tasks } });
      await agent.call("two", slot);
      return { document: await agent.exportSession(slot), state: await agent.getAgentState(slot) };
    }, slot);

    const redis = await startRedis();
    const client = await createClient({ url: redis.url }).connect();
    const { createAgent, customModel } = await importDist("entry/node.js");
    const { redisStore } = await importDist("stores/redis.js");
    const model = customModel({ id: "node", async *generate() { yield { type: "text", text: "in Node" }; } });
    const agent = await createAgent({ name: "elsewhere", model, store: redisStore(client) });
    await agent.importSession(slot, begun.document);
    assert.deepEqual(kept(await agent.getAgentState(slot)), kept(begun.state));
    await agent.call("three", slot);
    const [carried, there] = [await agent.exportSession(slot), await agent.getAgentState(slot)];
    const history = await agent.history(slot);
    await agent.close();
    await client.close();
    await redis.stop();

    const back = await within(page, async ({ createAgent, echo }, { slot, carried }) => {
      const agent = await createAgent({ name: "helper", model: echo("home again: ") });
      await agent.deleteSession(slot);
      await agent.importSession(slot, carried);
      const [state, history] = [await agent.getAgentState(slot), await agent.history(slot)];
      const { text } = await agent.call("four", slot);
      return { state, history, text };
    }, { slot, carried });
    assert.deepEqual(kept(back.state), kept(there));
    assert.deepEqual(back.history, history);
    assert.deepEqual([back.history.length, back.text], [6, "home again: four"]);
  },
  { skip: withoutRedis },
);
