// The agent of this page, made from the settings, with every feature on.
import { createAgent, customModel, demoModel, indexedDbStore, localStorageStore, memoryStore } from "lockgate";
import type { Agent, CompactionConfig, Model, Store } from "lockgate";
import { skills, subagents, toolGroups, toolsFor } from "./abilities.ts";
import { loadLater } from "../app/lazy.tsx";
import type { Choices, Key, StoreName } from "../settings/choices.ts";

/** The URL of the worker whose agent this page uses. */
export const workerUrl = document.querySelector<HTMLMetaElement>('meta[name="lockgate-remote"]')?.content;

/** Makes the agent, or a remote agent if the page has the URL of a worker. Bad choices reject with OPTIONS. Nothing is read or written before the first call. */
export async function openAgent(choices: Choices, key: Key): Promise<Agent> {
  if (workerUrl) return (await import("lockgate/remote")).remoteAgent({ url: workerUrl });
  const model = await modelOf(choices, key);
  const agent: Agent = await createAgent({
    name: "lockgate",
    systemPrompt: "You are a brief and friendly assistant.",
    model,
    store: storeOf(choices.store),
    tools: toolsFor(() => agent.files),
    toolGroups,
    skills,
    subagents,
    workspace: true,
    taskList: true,
    planMode: true,
    metaTool: true,
    memory: choices.provider === "demo" ? { model: noter } : true,
    compaction: compactionOf(choices),
    // Small limits, so that the demo shows an eviction.
    toolResultEviction: { maxChars: 6_000, previewChars: 600 },
  });
  return agent;
}

export async function modelOf(choices: Choices, key: Key): Promise<Model> {
  const { provider } = choices;
  if (provider === "demo") return demoModel({ delayMs: 15 });
  return (await import("./models.ts")).modelOf(provider, choices, key);
}

/** The memory model that takes notes when the demo model answers. */
const noter: Model = customModel({
  id: "demo-notes",
  async *generate({ messages }) {
    yield { type: "text", text: (await loadLater()).notesOf(messages) };
  },
});

/** The stores of this page. A new agent gets the store of the old one, so that sessions in memory are kept. */
const opened = new Map<StoreName, Store>();

function storeOf(name: StoreName): Store {
  const store = opened.get(name) ?? make[name]();
  opened.set(name, store);
  return store;
}

const make: Readonly<Record<StoreName, () => Store>> = {
  indexeddb: () => indexedDbStore("lockgate"),
  localstorage: () => localStorageStore("lockgate"),
  memory: () => memoryStore(),
};

function compactionOf({ compaction }: Choices): boolean | CompactionConfig {
  const { when, triggerMessages, triggerTokens, keepMessages } = compaction;
  if (when === "never") return false;
  return {
    keepMessages,
    // 0 turns a trigger off. With "overflow" both are off: only a request that is refused as too large is compacted.
    triggerMessages: when === "trigger" ? triggerMessages : 0,
    ...(when === "overflow" ? { triggerTokens: 0 } : triggerTokens !== null && { triggerTokens }),
  };
}
