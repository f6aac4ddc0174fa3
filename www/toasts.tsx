// What was just deleted and can be kept, and what could not be done: short, at the edge, not in the way.
import type { Chat } from "./chat.ts";
import { Cross } from "./icons.tsx";
import { talk } from "./text/talk.ts";

export function Toasts({ chat, onUndo }: { readonly chat: Chat; readonly onUndo: () => void }) {
  const { removal, problem } = chat;
  return (
    <div class="toasts">
      <div class="toast" role="status">
        {removal && (
          <>
            <span>{talk.removed(removal.title)}</span>
            <button type="button" class="plain" onClick={onUndo}>
              {talk.undo}
            </button>
          </>
        )}
      </div>
      <div class="toast bad" role="alert">
        {problem && (
          <>
            <p>
              {problem.message}
              {problem.hint && <small>{problem.hint}</small>}
            </p>
            <button type="button" class="bare" aria-label={talk.dismiss} onClick={() => chat.dismiss()}>
              <Cross />
            </button>
          </>
        )}
      </div>
    </div>
  );
}
