// The files of a user, and the notes among them: lists, shows, edits, creates and deletes them.
import { useState } from "preact/hooks";
import { LockgateError } from "lockgate";
import type { Agent } from "lockgate";
import { ProblemBox } from "../controls/problem-box.tsx";
import { inside } from "../text/inspect.ts";
import { Visible } from "../controls/hidden-chars.tsx";
import { Unread } from "./context-view.tsx";
import { Outcome } from "../controls/action-outcome.tsx";
import type { ViewProps } from "./panel.tsx";
import { useDeed, useReading } from "../controls/agent-hooks.ts";
import type { Deed } from "../controls/agent-hooks.ts";

const words = inside.files;

export function FilesView(props: ViewProps) {
  return <Shelf {...props} isShown={() => true} empty={words.empty} label={words.list} />;
}

/** MEMORY.md and the daily notes. */
export function NotesView(props: ViewProps) {
  const isNote = (path: string) => path === "MEMORY.md" || path.startsWith("memory/");
  return (
    <>
      <p class="quiet">{inside.memory.about}</p>
      <Shelf {...props} isShown={isNote} empty={inside.memory.empty} label={inside.memory.list} only="MEMORY.md" />
    </>
  );
}

interface ShelfProps extends ViewProps {
  readonly isShown: (path: string) => boolean;
  readonly empty: string;
  readonly label: string;
  /** The only file that can be created here. If absent, any file can be. */
  readonly only?: string;
}

function Shelf({ agent, slot, version, isShown, empty, label, only }: ShelfProps) {
  const userId = slot.userId ?? null;
  const [open, setOpen] = useState<string | null>(null);
  const reading = useReading(() => pathsOf(agent, userId), [agent, userId, version]);
  const deed = useDeed(reading.again);
  if (!reading.value) return <Unread problem={reading.problem} onRetry={reading.again} />;
  if (reading.value === "per session") return <p class="quiet">{words.perSession}</p>;
  const paths = reading.value.filter(isShown);
  const make = (path: string) =>
    deed.run(async () => {
      if (!paths.includes(path)) await agent.files.write(userId, path, "");
      setOpen(path);
    });
  return (
    <>
      <Outcome deed={deed} />
      {reading.problem && <ProblemBox problem={reading.problem} onRetry={reading.again} />}
      {paths.length === 0 && <p class="quiet">{empty}</p>}
      <ul class="files" aria-label={label}>
        {paths.map((path) => (
          <li key={path}>
            <button
              type="button"
              class="file"
              aria-expanded={path === open}
              onClick={() => setOpen(path === open ? null : path)}
            >
              <Visible text={path} />
            </button>
            {path === open && (
              <Editor {...{ agent, slot, version, path, deed }} onGone={() => setOpen(null)} />
            )}
          </li>
        ))}
      </ul>
      {only === undefined && <NewFile onMake={make} />}
      {only !== undefined && !paths.includes(only) && (
        <button type="button" class="plain" onClick={() => make(only)}>
          {inside.memory.make}
        </button>
      )}
    </>
  );
}

interface EditorProps extends ViewProps {
  readonly path: string;
  readonly deed: Deed;
  readonly onGone: () => void;
}

function Editor({ agent, slot, version, path, deed, onGone }: EditorProps) {
  const userId = slot.userId ?? null;
  // Null while nothing was typed: then the stored text is shown, also when it changes.
  const [typed, setTyped] = useState<string | null>(null);
  const [isSure, setSure] = useState(false);
  const stored = useReading(() => agent.files.read(userId, path), [agent, userId, path, version]);
  if (stored.value === null) return <Unread problem={stored.problem} onRetry={stored.again} />;
  const save = () =>
    deed.run(async () => {
      await agent.files.write(userId, path, typed ?? "");
      stored.again();
      setTyped(null);
      return words.saved(path);
    });
  const remove = () =>
    deed.run(async () => {
      await agent.files.delete(userId, path);
      onGone();
      return words.deleted(path);
    });
  const hasChanged = typed !== null && typed !== stored.value;
  return (
    <div class="editor">
      <textarea
        dir="auto"
        aria-label={words.text(path)}
        value={typed ?? stored.value}
        spellcheck={false}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <div class="row">
        <button type="button" class="plain" disabled={!hasChanged || deed.isBusy} onClick={save}>
          {inside.common.save}
        </button>
        {hasChanged && (
          <button type="button" class="plain" onClick={() => setTyped(null)}>
            {inside.common.cancel}
          </button>
        )}
        {/* The second click deletes, because a deletion cannot be undone. */}
        <button
          type="button"
          class={isSure ? "plain grave" : "plain"}
          onClick={() => (isSure ? remove() : setSure(true))}
          onBlur={() => setSure(false)}
        >
          {isSure ? words.really : words.remove}
        </button>
      </div>
    </div>
  );
}

function NewFile({ onMake }: { readonly onMake: (path: string) => void }) {
  const [path, setPath] = useState("");
  const make = (event: SubmitEvent) => {
    event.preventDefault();
    onMake(path.trim());
    setPath("");
  };
  return (
    <form class="row" onSubmit={make}>
      <label class="labelled">
        <span>{words.make}</span>
        <input
          value={path}
          placeholder={words.example}
          autocomplete="off"
          required
          onInput={({ currentTarget }) => setPath(currentTarget.value)}
        />
      </label>
      <button class="plain">{words.made}</button>
    </form>
  );
}

/** "per session" if the store keeps the files of the anonymous user per session: then there is no list to show. */
async function pathsOf(agent: Agent, userId: string | null): Promise<readonly string[] | "per session"> {
  try {
    return await agent.files.list(userId);
  } catch (error) {
    if (LockgateError.isInstance(error) && error.code === "ID_INVALID") return "per session";
    throw error;
  }
}
