// Opens the agent and shows the page. Opens another agent when the settings change. Shows why the start failed.
import { render } from "preact";
import type { Agent } from "lockgate";
import { openAgent, workerUrl } from "../agent/agent.ts";
import { App } from "./app.tsx";
import { Chat } from "./chat.ts";
import { demoInUse, page } from "./in-use.ts";
import type { InUse } from "./in-use.ts";
import { prepareLater } from "./lazy.tsx";
import { counted } from "./loading.ts";
import { defaults, hasChosen, noKey } from "../settings/choices.ts";
import type { Choices, Key } from "../settings/choices.ts";
import { StartProblem } from "./start-failure.tsx";
import { problemOf } from "../session/turn.ts";

const root = document.getElementById("app") ?? document.body;
let chatInUse: Chat | null = null;

interface Chosen {
  readonly choices: Choices;
  readonly key: Key;
  readonly inUse: InUse;
}

const plain: Chosen = { choices: defaults, key: noKey, inUse: demoInUse };
const stored = () => import("../settings/stored-choices.ts");

async function chosen(): Promise<Chosen> {
  if (workerUrl) return { ...plain, inUse: (await stored()).inUseAt(workerUrl) };
  if (!hasChosen()) return plain;
  const { readChoices, readKey, inUseOf } = await stored();
  const choices = readChoices();
  const key = readKey(choices);
  return { choices, key, inUse: inUseOf(choices, key) };
}

async function start(choosing: Promise<Chosen>): Promise<void> {
  const progress = document.querySelector("progress");
  const tell = (part: number) => {
    if (progress) progress.value = part;
  };
  let isPlain = false;
  try {
    const { choices, key, inUse } = await choosing;
    isPlain = choices === defaults;
    const agent = await counted(() => openAgent(choices, key), tell);
    show(agent, { choices, key, inUse });
  } catch (error) {
    const place = document.querySelector<HTMLElement>(".start") ?? root;
    place.replaceChildren();
    render(
      <StartProblem
        problem={problemOf(error)}
        onRetry={() => location.reload()}
        {...(!isPlain && { onPlain: () => void start(Promise.resolve(plain)) })}
      />,
      place,
    );
  }
}

function show(agent: Agent, { choices, key, inUse }: Chosen): void {
  page.inUse = inUse;
  const chat = new Chat(agent);
  // The page replaces the static HTML.
  if (!chatInUse) root.replaceChildren();
  else chat.takeOver(chatInUse);
  chatInUse = chat;
  prepareLater();
  render(<App {...{ chat, choices }} apiKey={key} onApply={apply} />, root);
}

/** Running calls end with the old agent. Later calls use the new one. */
async function apply(choices: Choices, key: Key): Promise<boolean> {
  const last = chatInUse;
  const { keep, inUseOf } = await stored();
  const agent = await openAgent(choices, key);
  const isKept = keep(choices, key);
  show(agent, { choices, key, inUse: inUseOf(choices, key) });
  last?.close();
  void last?.agent.drain().then(() => last.agent.close());
  return isKept;
}

// If the URL names a session, its turns are drawn as soon as the wasm is loaded.
if (location.hash) prepareLater();
// Not awaited: modules that load meanwhile import this script, and wait until it has run to its end.
void start(chosen());
