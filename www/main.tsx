// Opens the agent and puts the page up, or says why it could not.
import { render } from "preact";
import { openAgent } from "./agent.ts";
import { App } from "./app.tsx";
import { Chat } from "./chat.ts";
import { ProblemBox } from "./problem-box.tsx";
import { problemOf } from "./turn.ts";

const root = document.getElementById("app") ?? document.body;

try {
  render(<App chat={new Chat(await openAgent())} />, root);
} catch (error) {
  const retry = () => location.reload();
  render(
    <ProblemBox title="Lockgate could not start" problem={problemOf(error)} onRetry={retry} />,
    root,
  );
}
