// Toasts: a deleted session with an undo button, and an action that failed.
import type { Chat } from "../app/chat.ts";
import { page } from "../app/in-use.ts";
import { Cross } from "./icons.tsx";
import { said } from "../text/conversation.ts";

export function Toasts({ chat, onUndo }: { readonly chat: Chat; readonly onUndo: () => void }) {
  const { removal } = chat;
  const problem = chat.problem && page.explain(chat.problem);
  return (
    <div class="toasts">
      <div class="toast" role="status">
        {removal && (
          <>
            <span dir="auto">{said.removed(removal.title)}</span>
            <button type="button" class="plain" onClick={onUndo}>
              {said.undo}
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
            <button type="button" class="bare" aria-label={said.dismiss} onClick={() => chat.dismiss()}>
              <Cross />
            </button>
          </>
        )}
      </div>
    </div>
  );
}
