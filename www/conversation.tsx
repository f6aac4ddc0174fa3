// The open session: its turns as they grow, or a welcome when nothing was said yet.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Conversation } from "./chat.ts";
import { Mark } from "./icons.tsx";
import { TurnView } from "./message.tsx";
import { ProblemBox } from "./problem-box.tsx";

export interface ConversationViewProps {
  readonly conversation: Conversation;
  readonly running: boolean;
  readonly onExample: (prompt: string) => void;
  readonly onRetry: () => void;
}

export function ConversationView(props: ConversationViewProps) {
  const { conversation, running, onExample, onRetry } = props;
  const { turns, problem } = conversation;
  const scroller = useStickyEnd();
  return (
    <div class="scroller" ref={scroller}>
      <div
        class="column"
        role="log"
        aria-live="polite"
        aria-label="Conversation"
        aria-busy={running || !turns}
      >
        {problem && (
          <ProblemBox title="This session could not be read" problem={problem} onRetry={onRetry} />
        )}
        {/* Turns are only added at the end, so their place is a key that outlives a re-read. */}
        {turns?.map((turn, index) => (
          <TurnView key={index} turn={turn} />
        ))}
      </div>
      {turns?.length === 0 && !problem && <Welcome onExample={onExample} />}
    </div>
  );
}

const examples = [
  "What time is it?",
  "Think about canal locks",
  "Give me a long answer",
  "Try the failing tool",
];

function Welcome({ onExample }: { readonly onExample: (prompt: string) => void }) {
  return (
    <section class="welcome">
      <Mark />
      <h2>One gate, one boat at a time.</h2>
      <p>
        Lockgate is an agent engine that runs whole in this page, and every session is kept in this
        browser. A small offline demo model answers here, so nothing you write leaves your device.
      </p>
      <ul>
        {examples.map((prompt) => (
          <li key={prompt}>
            <button type="button" class="plain" onClick={() => onExample(prompt)}>
              {prompt}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Follows the end while one is there, and leaves the reader alone who has scrolled up. */
function useStickyEnd() {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const look = () => {
      isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
    };
    box.addEventListener("scroll", look, { passive: true });
    return () => box.removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && isAtEnd.current) box.scrollTop = box.scrollHeight;
  });
  return scroller;
}
