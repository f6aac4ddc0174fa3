// One turn on the page: the question, then the answer with its thinking and its tool calls.
import { useMemo } from "preact/hooks";
import type { Reason } from "lockgate";
import { Markdown } from "./markdown.tsx";
import { ProblemBox } from "./problem-box.tsx";
import { timeOfDay } from "./time.ts";
import type { Part, ToolPart, Turn } from "./turn.ts";
import { visible } from "./visible.tsx";

export function TurnView({ turn }: { readonly turn: Turn }) {
  // The same turn gives the same nodes: a long conversation costs nothing while its end streams.
  return useMemo(
    () => (
      <article class="turn" data-progress={turn.progress}>
        {turn.question && (
          <header class="question">
            <p>{turn.question}</p>
            <time dateTime={turn.at}>{timeOfDay(turn.at)}</time>
          </header>
        )}
        <div class="answer">
          {turn.parts.map((part, index) => (
            <PartView key={index} part={part} open={turn.progress === "running"} />
          ))}
        </div>
        <Ending turn={turn} />
      </article>
    ),
    [turn],
  );
}

function PartView({ part, open }: { readonly part: Part; readonly open: boolean }) {
  switch (part.kind) {
    case "text":
      return <Markdown text={part.text} />;
    case "thinking":
      return (
        <details class="thinking">
          <summary>{open ? "Thinking" : "Thought"}</summary>
          <p>{part.text}</p>
        </details>
      );
    case "tool":
      return <ToolCard tool={part} />;
    case "note":
      return <p class="note">{part.text}</p>;
  }
}

function ToolCard({ tool }: { readonly tool: ToolPart }) {
  return (
    <section class="tool" data-state={tool.state} aria-label={`Tool ${tool.name}`}>
      <header>
        <code>{visible(tool.name)}</code>
        <span class="state">{states[tool.state]}</span>
      </header>
      {tool.input && tool.input !== "{}" && <Field name="in" text={tool.input} />}
      {tool.output && <Field name="out" text={tool.output} />}
    </section>
  );
}

function Field({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div class="field">
      <span>{name}</span>
      {/* Long output scrolls, and what scrolls must be reachable by keyboard. */}
      <pre tabIndex={text.length > 400 ? 0 : undefined}>{visible(text)}</pre>
    </div>
  );
}

function Ending({ turn }: { readonly turn: Turn }) {
  if (turn.problem) {
    const title = turn.accepted ? "The answer failed" : "Not sent";
    return <ProblemBox title={title} problem={turn.problem} />;
  }
  const note = noteOf(turn);
  return note ? <p class="note">{note}</p> : null;
}

function noteOf(turn: Turn): string {
  switch (turn.progress) {
    case "sending":
      return "Sending";
    case "queued":
      return turn.nAhead > 0 ? `Queued, ${turn.nAhead} ahead` : "Queued";
    case "running":
      return turn.parts.length ? "" : "Waiting for the first word";
    case "ended":
      return turn.reason ? endings[turn.reason] : "";
  }
}

const states: Readonly<Record<ToolPart["state"], string>> = {
  asked: "asked",
  running: "running",
  success: "done",
  error: "failed",
  denied: "denied",
  interrupted: "interrupted",
  suspended: "suspended",
};

const endings: Readonly<Record<Reason, string>> = {
  stop: "",
  asking: "Waits for an approval",
  suspended: "Waits for a result from outside",
  interrupted: "Stopped",
  "max-iterations": "Stopped at the limit of steps",
  length: "Cut at the model’s length limit",
  middleware: "Stopped by a rule of this agent",
  empty: "The model answered nothing",
};
