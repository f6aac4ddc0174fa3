// The input field: Enter sends, Shift+Enter makes a new line, Esc stops. Images are pasted or chosen.
import type { RefObject } from "preact";
import { useRef } from "preact/hooks";
import { Cross, Picture, Send, Stop } from "../controls/icons.tsx";
import type { MediaBlock } from "../session/part.ts";
import type { Talk } from "../session/session.ts";
import { page } from "../app/in-use.ts";
import { talk as words } from "../text/sessions.ts";

export interface ComposerProps {
  readonly talk: Talk;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  readonly onChange: () => void;
  /** Attaches the images among the files. */
  readonly onImages: (files: readonly File[]) => Promise<void>;
  readonly onSend: (text: string, images: readonly MediaBlock[]) => void;
}

export function Composer({ talk, field, onChange, onImages, onSend }: ComposerProps) {
  const { draft, images, isRunning } = talk;
  const chooser = useRef<HTMLInputElement>(null);
  const text = draft.trim();
  const canSend = text !== "" || images.length > 0;
  const send = (event: Event) => {
    event.preventDefault();
    if (canSend) onSend(text, images);
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method is composing, Enter chooses a word.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  };
  const attach = async (files: FileList | null | undefined) => {
    if (files?.length) await onImages([...files]);
  };
  const detach = (image: MediaBlock) => {
    talk.images = talk.images.filter((one) => one !== image);
    onChange();
  };
  return (
    <form class="composer" onSubmit={send}>
      {images.length > 0 && (
        <ul class="attached">
          {images.map((image, at) => (
            <li key={at}>
              {image.name ?? words.unnamed}
              <button type="button" class="bare" aria-label={words.detach(image.name ?? words.unnamed)} onClick={() => detach(image)}>
                <Cross />
              </button>
            </li>
          ))}
        </ul>
      )}
      {page.inUse.keyless && (
        <p class="note keyless">
          {words.keyless(page.inUse.keyless)}{" "}
          <button type="button" class="link" onClick={() => page.openSettings?.()}>
            {words.toSettings}
          </button>
        </p>
      )}
      <div class="box">
        <button type="button" class="round quiet" aria-label={words.attach} title={words.attach} onClick={() => chooser.current?.click()}>
          <Picture />
        </button>
        <input
          ref={chooser}
          type="file"
          accept="image/*"
          multiple
          hidden
          onChange={(event) => void attach(event.currentTarget.files)}
        />
        <textarea
          ref={field}
          dir="auto"
          rows={Math.min(8, draft.split("\n").length)}
          aria-label={words.message}
          placeholder={isRunning ? words.sayMore : words.say}
          value={draft}
          onInput={(event) => {
            talk.draft = event.currentTarget.value;
            onChange();
          }}
          onPaste={(event) => void attach(event.clipboardData?.files)}
          onKeyDown={onKeyDown}
        />
        {isRunning && (
          <button type="button" class="round" aria-label={words.stop} title={words.stopHint} onClick={() => talk.stop()}>
            <Stop />
          </button>
        )}
        <button type="submit" class="round primary" aria-label={words.send} title={words.sendHint} disabled={!canSend}>
          <Send />
        </button>
      </div>
    </form>
  );
}
