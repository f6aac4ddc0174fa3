// The dialog for a new title.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { said } from "../text/conversation.ts";
import { talk } from "../text/sessions.ts";

export interface RenameDialogProps {
  readonly title: string;
  /** Null if the title does not change. */
  readonly onTitle: (title: string | null) => void;
}

export function RenameDialog({ title, onTitle }: RenameDialogProps) {
  const [text, setText] = useState(title);
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const done = (event: Event) => {
    event.preventDefault();
    onTitle(text.trim() && text.trim() !== title ? text.trim() : null);
  };
  return (
    <dialog ref={dialog} class="dialog" aria-label={talk.rename} onCancel={() => onTitle(null)}>
      <form onSubmit={done}>
        <h2>{talk.rename}</h2>
        <input
          dir="auto"
          aria-label={said.newTitle}
          value={text}
          maxLength={200}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <footer>
          <button type="button" class="plain" onClick={() => onTitle(null)}>
            {said.cancel}
          </button>
          <button type="submit" class="plain primary">
            {said.save}
          </button>
        </footer>
      </form>
    </dialog>
  );
}
