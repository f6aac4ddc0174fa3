// The agent of this page, made from what was chosen in the settings, with everything on.
import { createAgent, customModel, demoModel, indexedDbStore, localStorageStore, memoryStore } from "lockgate";
import type { Agent, CompactionConfig, Model, Store } from "lockgate";
import { skills, subagents, toolGroups, toolsFor } from "./equipment.ts";
import { loadLater } from "./lazy.tsx";
import type { Choices, Key, StoreName } from "./settings/choices.ts";

/** Or that of a worker, if whoever serves the page says where it is. Bad choices reject with OPTIONS; nothing is read or written before the first call. */
export async function openAgent(choices: Choices, key: Key): Promise<Agent> {
  const remote = document.querySelector<HTMLMetaElement>('meta[name="lockgate-remote"]')?.content;
  if (remote) return (await import("lockgate/remote")).remoteAgent({ url: remote });
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
    // Small enough that a page can show what happens.
    toolResultEviction: { maxChars: 6_000, previewChars: 600 },
  });
  return agent;
}

export async function modelOf(choices: Choices, key: Key): Promise<Model> {
  const { provider } = choices;
  if (provider === "demo") return demoModel({ delayMs: 15 });
  return (await import("./models.ts")).modelOf(provider, choices, key);
}

/** Who takes notes for the demo model. */
const noter: Model = customModel({
  id: "demo-notes",
  async *generate({ messages }) {
    yield { type: "text", text: (await loadLater()).notesOf(messages) };
  },
});

/** One of each a page: an agent that takes over from another finds what that one has stored, also in memory. */
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
    // Only when a request is refused as too large: no number of messages or tokens is too many by itself.
    triggerMessages: when === "trigger" ? triggerMessages : 0,
    ...(when === "overflow" ? { triggerTokens: 0 } : triggerTokens !== null && { triggerTokens }),
  };
}
