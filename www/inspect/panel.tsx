// The panel of a session: tasks and plan, the next request, the state, the files and the notes.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Agent, Slot } from "lockgate";
import type { Insight } from "../session/session-state.ts";
import { inside } from "../text/inspect.ts";
import { look } from "../text/start.ts";
import { ContextView } from "./context-view.tsx";
import { FilesView, NotesView } from "./files-view.tsx";
import { Side } from "./tasks-and-plan.tsx";
import { StateView } from "./state-view.tsx";
import "../markdown/markdown.css";
import "../controls/fields.css";
import "./panel.css";
import "./tasks-and-plan.css";
import "./files.css";

const tabs = ["work", "context", "state", "files", "memory"] as const;
type Tab = (typeof tabs)[number];
const views = { context: ContextView, state: StateView, files: FilesView, memory: NotesView };

export interface ViewProps {
  readonly agent: Agent;
  readonly slot: Slot;
  /** When this number changes, the view reads its data again. */
  readonly version: number;
}

export interface PanelProps extends ViewProps {
  /** The data of the first tab. */
  readonly insight: Insight;
  readonly isAtWork: boolean;
  /** Whether the user has opened the panel, so that it gets the focus. */
  readonly takesFocus: boolean;
}

export function Panel({ agent, slot, version, insight, isAtWork, takesFocus }: PanelProps) {
  const [open, setOpen] = useState<Tab>(isAtWork ? "work" : "context");
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (takesFocus) list.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }, []);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: tabs.length - 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(open) + step) % tabs.length] ?? open;
    setOpen(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  const View = open === "work" ? null : views[open];
  return (
    <div class="inspector">
      <div class="tabs" role="tablist" aria-label={look.panel.label} ref={list} onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`tab-${tab}`}
            aria-selected={tab === open}
            aria-controls="panel-view"
            tabIndex={tab === open ? 0 : -1}
            onClick={() => setOpen(tab)}
          >
            {inside.tabs[tab]}
          </button>
        ))}
      </div>
      <div class="view" id="panel-view" role="tabpanel" aria-labelledby={`tab-${open}`} tabIndex={0}>
        {/* The key gives each session its own view, without open rows and typed text of another session. */}
        {View ? (
          <View key={`${slot.userId ?? ""}/${slot.sessionId}`} {...{ agent, slot, version }} />
        ) : (
          <Side insight={insight} />
        )}
      </div>
    </div>
  );
}
