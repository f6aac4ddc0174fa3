// Opens the agent and puts the page up, opens another when the settings change, or says why it could not.
import { render } from "preact";
import type { Agent } from "lockgate";
import { openAgent } from "./agent.ts";
import { App } from "./app.tsx";
import { Chat } from "./chat.ts";
import { prepareLater } from "./lazy.tsx";
import { counted } from "./loading.ts";
import { defaults, hasChosen, noKey } from "./settings/choices.ts";
import type { Choices, Key } from "./settings/choices.ts";
import { StartProblem } from "./start-problem.tsx";
import { problemOf } from "./turn.ts";

const root = document.getElementById("app") ?? document.body;
let inUse: Chat | null = null;

interface Chosen {
  readonly choices: Choices;
  readonly key: Key;
}

const plain: Chosen = { choices: defaults, key: noKey };

async function chosen(): Promise<Chosen> {
  if (!hasChosen()) return plain;
  const { readChoices, readKey } = await import("./settings/kept.ts");
  const choices = readChoices();
  return { choices, key: readKey(choices) };
}

async function start(choosing: Promise<Chosen>): Promise<void> {
  const progress = document.querySelector("progress");
  const tell = (part: number) => {
    if (progress) progress.value = part;
  };
  let isPlain = false;
  try {
    const { choices, key } = await choosing;
    isPlain = choices === defaults;
    const agent = await counted(() => openAgent(choices, key), tell);
    show(agent, choices, key);
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

function show(agent: Agent, choices: Choices, key: Key): void {
  const chat = new Chat(agent);
  // The page that came as HTML has done its work.
  if (!inUse) root.replaceChildren();
  else chat.takeOver(inUse);
  inUse = chat;
  prepareLater();
  render(<App {...{ chat, choices }} apiKey={key} onApply={apply} />, root);
}

/** What runs goes on to its end with the agent it began with; what is said next is the new one's. */
async function apply(choices: Choices, key: Key): Promise<boolean> {
  const last = inUse;
  const { keep } = await import("./settings/kept.ts");
  const agent = await openAgent(choices, key);
  const isKept = keep(choices, key);
  show(agent, choices, key);
  last?.close();
  void last?.agent.drain().then(() => last.agent.close());
  return isKept;
}

// Where the address names a session, its turns are wanted as soon as the wasm is here.
if (location.hash) prepareLater();
// Not awaited: what is loaded meanwhile uses this script, and waits until it has run to its end.
void start(chosen());
