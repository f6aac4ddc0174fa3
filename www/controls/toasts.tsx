// Toasts: a deleted session with an undo button, and an action that failed.
import type { Chat } from "../app/chat.ts";
import { Cross } from "./icons.tsx";
import { talk } from "../text/sessions.ts";

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
