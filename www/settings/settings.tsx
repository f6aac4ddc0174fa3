// The settings dialog: model, storage and compaction.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Agent } from "lockgate";
import { page } from "../app/in-use.ts";
import { Outcome } from "../controls/action-outcome.tsx";
import { useDeed } from "../controls/agent-hooks.ts";
import { settings } from "../text/settings.ts";
import type { Choices, Key } from "./choices.ts";
import { CompactionForm } from "./compaction-form.tsx";
import { Group } from "./fields.tsx";
import { ModelForm } from "./model-form.tsx";
import { Report, StorageForm } from "./storage-form.tsx";
import "../controls/fields.css";
import "./settings.css";

export interface SettingsProps {
  readonly agent: Agent;
  readonly choices: Choices;
  readonly apiKey: Key;
  /** Opens an agent with these settings. False if the browser could not store them. */
  readonly onApply: (choices: Choices, key: Key) => Promise<boolean>;
  readonly onClose: () => void;
}

const words = settings;

export function Settings({ agent, choices: given, apiKey, onApply, onClose }: SettingsProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [choices, setChoices] = useState(given);
  const [key, setKey] = useState(apiKey);
  const deed = useDeed();
  useEffect(() => dialog.current?.showModal(), []);
  const change = (next: Partial<Choices>) => setChoices((now) => ({ ...now, ...next }));
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    deed.run(async () => ((await onApply(choices, key)) ? words.applied : words.notKept));
  };
  return (
    <dialog
      class="settings"
      ref={dialog}
      aria-labelledby="settings-title"
      onClose={onClose}
      // Keeps the shortcuts of the page from working in the dialog.
      onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <form onSubmit={apply}>
        <header>
          <h2 id="settings-title">{words.title}</h2>
          <button
            type="button"
            class="bare"
            aria-label={words.close}
            onClick={() => dialog.current?.close()}
          >
            ✕
          </button>
        </header>
        <div class="groups">
          {page.inUse.worker ? (
            <>
              <p>{words.atWorker(page.inUse.worker)}</p>
              <Group title={words.storage.title}>
                <Report agent={agent} />
              </Group>
            </>
          ) : (
            <>
              <ModelForm {...{ choices, change, setKey }} apiKey={key} />
              <StorageForm {...{ agent, choices, change }} />
              <CompactionForm {...{ choices, change }} />
            </>
          )}
        </div>
        {!page.inUse.worker && (
          <footer>
            <Outcome deed={deed} />
            <button class="plain primary" disabled={deed.isBusy}>
              {words.apply}
            </button>
          </footer>
        )}
      </form>
    </dialog>
  );
}
