// The question of a tool to the user: the exact input, and the possible answers. Accidental clicks are ignored.
import { useEffect, useState } from "preact/hooks";
import type { Answer, Ask, Rule } from "lockgate";
import { Visible, jsonOf } from "../controls/hidden-chars.tsx";
import { Field } from "./tool-card.tsx";
import { said } from "../text/conversation.ts";

export interface ApprovalProps {
  readonly ask: Ask;
  readonly onAnswer: (answer: Answer) => void;
}

export function ApprovalCard({ ask, onAnswer }: ApprovalProps) {
  const isApproval = ask.kind === "approval";
  const title = isApproval ? said.asks(ask.name) : said.asksResult(ask.name);
  const Answers = isApproval ? Approval : Result;
  return (
    <section class="tool approval" data-state="asking" aria-label={title}>
      <header>
        <strong>
          <Visible text={title} />
        </strong>
        <span class="state">{said.states.asking}</span>
      </header>
      {ask.reason && <p class="reason">{ask.reason}</p>}
      <Answers ask={ask} onAnswer={onAnswer} />
    </section>
  );
}

function Approval({ ask, onAnswer }: ApprovalProps) {
  const exact = jsonOf(ask.input);
  const [draft, setDraft] = useState<string | null>(null);
  const [reason, setReason] = useState<string | null>(null);
  const isReady = useReady();
  const edited = draft === null || draft === exact ? null : parsed(draft);
  const isBad = edited !== null && edited.bad;
  const { toolCallId, suggestedRules } = ask;
  const allow = (remember: readonly Rule[]) => (event: Event) => {
    // Only a real click of the user counts, not a click by a script.
    if (!event.isTrusted || !isReady || isBad) return;
    const input = edited ? { input: edited.value } : {};
    onAnswer({ toolCallId, approve: true, ...input, ...(remember.length ? { remember } : {}) });
  };
  const deny = (event: Event) => {
    event.preventDefault();
    if (reason === null) return setReason("");
    onAnswer({ toolCallId, approve: false, ...(reason ? { reason } : {}) });
  };
  if (isFramed) return <p class="reason">{said.framed}</p>;
  return (
    <form onSubmit={deny}>
      {draft === null ? (
        <Field name={said.input} text={exact} />
      ) : (
        <label class="field">
          <span>{said.input}</span>
          <textarea
            rows={Math.min(12, draft.split("\n").length + 1)}
            aria-label={said.changeInput}
            aria-invalid={isBad}
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
          />
        </label>
      )}
      {isBad && <p class="reason bad">{said.badJson}</p>}
      {reason !== null && (
        <input
          class="why"
          dir="auto"
          aria-label={said.denyReason}
          placeholder={said.denyReason}
          value={reason}
          ref={(field) => field?.focus()}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      )}
      <footer>
        <button type="button" class="plain primary" aria-disabled={!isReady || isBad} onClick={allow([])}>
          {said.allowOnce}
        </button>
        {suggestedRules.length > 0 && (
          <button
            type="button"
            class="plain"
            title={said.rule(suggestedRules.map(ruleText).join(", "))}
            aria-disabled={!isReady || isBad}
            onClick={allow(suggestedRules)}
          >
            {said.allowAlways}
          </button>
        )}
        <button type="submit" class="plain">
          {said.deny}
        </button>
        {draft === null && (
          <button type="button" class="link" onClick={() => setDraft(exact)}>
            {said.changeInput}
          </button>
        )}
      </footer>
    </form>
  );
}

function Result({ ask, onAnswer }: ApprovalProps) {
  const [text, setText] = useState("");
  const give = (failed: boolean) => () =>
    onAnswer({ toolCallId: ask.toolCallId, output: text, ...(failed ? { failed } : {}) });
  return (
    <>
      <Field name={said.input} text={jsonOf(ask.input)} />
      <textarea class="why" dir="auto" rows={2} aria-label={said.giveResult} placeholder={said.giveResult} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <footer>
        <button type="button" class="plain primary" onClick={give(false)}>
          {said.handIn}
        </button>
        <button type="button" class="plain" onClick={give(true)}>
          {said.handInFailure}
        </button>
      </footer>
    </>
  );
}

/** In a frame, another page could cover the buttons (clickjacking). */
const isFramed = window.top !== window.self;
/** How long the buttons are inactive, so that a click meant for something else does not answer a question that just appeared. */
const settleMs = 500;

/** Whether the card has been visible for a moment. Starts again each time the window gets the focus or is shown. */
function useReady(): boolean {
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let timer = 0;
    const settle = () => {
      clearTimeout(timer);
      setReady(false);
      timer = window.setTimeout(() => setReady(!document.hidden), settleMs);
    };
    settle();
    addEventListener("focus", settle);
    document.addEventListener("visibilitychange", settle);
    return () => {
      clearTimeout(timer);
      removeEventListener("focus", settle);
      document.removeEventListener("visibilitychange", settle);
    };
  }, []);
  return isReady;
}

function parsed(text: string): { readonly bad: boolean; readonly value?: unknown } {
  try {
    return { bad: false, value: JSON.parse(text) };
  } catch {
    return { bad: true };
  }
}

function ruleText({ tool_name, rule_content }: Rule): string {
  return rule_content === null ? tool_name : `${tool_name}(${rule_content})`;
}
