// What the next model request would contain: the share of each kind, and each part with its tokens and text.
import { useState } from "preact/hooks";
import type { ContextReport } from "lockgate";
import { ProblemBox } from "../controls/problem-box.tsx";
import type { Problem } from "../session/turn.ts";
import { inside } from "../text/inspect.ts";
import { Outcome } from "../controls/action-outcome.tsx";
import type { ViewProps } from "./panel.tsx";
import { PartRow } from "./context-part.tsx";
import type { Part } from "./context-part.tsx";
import { useDeed, useReading } from "../controls/agent-hooks.ts";

const words = inside.context;
const kinds = ["system", "tools", "summary", "message", "reminder"] as const;
/** The number of parts drawn at first: the newest ones. */
const shownAtFirst = 100;

export function ContextView({ agent, slot, version }: ViewProps) {
  const { sessionId, userId } = slot;
  const report = useReading(() => agent.inspect(slot), [agent, sessionId, userId, version]);
  const deed = useDeed(report.again);
  const compact = async () => {
    const made = await agent.compact(slot);
    if (made.messagesBefore === made.messagesAfter) return words.nothing;
    return words.compacted(
      made.messagesBefore,
      made.messagesAfter,
      made.tokensBefore,
      made.tokensAfter,
    );
  };
  const undo = async () => {
    await agent.undoCompaction(slot);
    return words.undone;
  };
  if (!report.value) return <Unread problem={report.problem} onRetry={report.again} />;
  const { parts } = report.value;
  const hasSummary = parts.some(({ kind }) => kind === "summary");
  const hasMessages = parts.some(({ kind }) => kind === "message");
  return (
    <>
      <WindowBar report={report.value} />
      <p class="quiet">{words.estimate}</p>
      <div class="row">
        <button
          type="button"
          class="plain"
          disabled={deed.isBusy || !hasMessages}
          onClick={() => deed.run(compact)}
        >
          {words.compact}
        </button>
        {hasSummary && (
          <button type="button" class="plain" disabled={deed.isBusy} onClick={() => deed.run(undo)}>
            {words.undo}
          </button>
        )}
      </div>
      <Outcome deed={deed} />
      {report.problem && <ProblemBox problem={report.problem} onRetry={report.again} />}
      <PartList parts={parts} agent={agent} slot={slot} />
    </>
  );
}

/** Shown in place of a value that is still being read, or could not be read. */
export function Unread(props: {
  readonly problem: Problem | null;
  readonly onRetry: () => void;
}) {
  if (props.problem) return <ProblemBox problem={props.problem} onRetry={props.onRetry} />;
  return <p class="quiet">{inside.common.reading}</p>;
}

function WindowBar({ report }: { readonly report: ContextReport }) {
  const { window, tokens, parts } = report;
  const sums = kinds
    .map((kind) => ({
      kind,
      sum: parts.filter((part) => part.kind === kind).reduce((n, part) => n + part.tokens, 0),
    }))
    .filter(({ sum }) => sum > 0);
  const free = Math.max((window ?? 0) - tokens, 0);
  return (
    <figure class="window">
      <figcaption>{window ? words.of(tokens, window) : words.unknown(tokens)}</figcaption>
      <div class="window-bar" aria-hidden="true">
        {sums.map(({ kind, sum }) => (
          <span key={kind} class={`part-${kind}`} style={{ flexGrow: sum }} />
        ))}
        {free > 0 && <span class="part-free" style={{ flexGrow: free }} />}
      </div>
      <ul class="key">
        {sums.map(({ kind, sum }) => (
          <li key={kind}>
            <span class={`swatch part-${kind}`} /> {words.kinds[kind]}{" "}
            <b>{inside.common.count(sum)}</b>
          </li>
        ))}
        {free > 0 && (
          <li>
            <span class="swatch part-free" /> {words.free} <b>{inside.common.count(free)}</b>
          </li>
        )}
      </ul>
    </figure>
  );
}

function PartList(props: Pick<ViewProps, "agent" | "slot"> & { readonly parts: readonly Part[] }) {
  const [nShown, setNShown] = useState(shownAtFirst);
  const { parts, agent, slot } = props;
  const fixed = parts.filter(({ kind }) => kind === "system" || kind === "tools");
  const rest = parts.filter(({ kind }) => kind !== "system" && kind !== "tools");
  const nHidden = Math.max(rest.length - nShown, 0);
  const row = (part: Part, at: number) => (
    <PartRow key={part.messageId ?? `${part.kind}-${at}`} {...{ part, agent, slot }} />
  );
  return (
    <ol class="parts">
      {fixed.map(row)}
      {nHidden > 0 && (
        <li>
          <button type="button" class="plain" onClick={() => setNShown((n) => n * 4)}>
            {words.earlier(nHidden)}
          </button>
        </li>
      )}
      {rest.slice(nHidden).map((part, at) => row(part, at + fixed.length))}
    </ol>
  );
}
