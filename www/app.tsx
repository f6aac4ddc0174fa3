// The page: sessions on the left, the open one on the right, and the keys that work everywhere.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useChat } from "./chat.ts";
import type { Chat } from "./chat.ts";
import { Composer } from "./composer.tsx";
import { ConversationView } from "./conversation.tsx";
import { Gear, Inside, Mark, Menu, Plus } from "./icons.tsx";
import { LazyPanel, LazySettings, useVersion } from "./panel/lazy.tsx";
import { ProblemBox } from "./problem-box.tsx";
import { goTo, useSessionId } from "./route.ts";
import { rowsOf, SessionList } from "./session-list.tsx";
import type { Row } from "./session-list.tsx";
import type { SettingsProps } from "./settings/settings.tsx";
import { look } from "./text/look.ts";

export interface AppProps extends Omit<SettingsProps, "onClose"> {
  readonly chat: Chat;
}

export function App({ chat, ...settings }: AppProps) {
  useChat(chat);
  const { agent } = settings;
  const sessionId = useSessionId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [drawerOpen, setDrawerOpen] = useState(false);
  const [panelOpen, setPanelOpen] = useState(false);
  const [settingsOpen, setSettingsOpen] = useState(false);
  const panelButton = useRef<HTMLButtonElement>(null);
  const version = useVersion(agent, { sessionId });
  const closePanel = () => {
    setPanelOpen(false);
    panelButton.current?.focus();
  };
  const togglePanel = () => (panelOpen ? closePanel() : setPanelOpen(true));
  const rows = rowsOf(chat.sessions, sessionId);
  const title = rows.find((row) => row.sessionId === sessionId)?.title ?? "";
  const running = chat.isRunning(sessionId);
  const conversation = chat.conversation(sessionId);

  const show = (id: string) => {
    goTo(id);
    setDrawerOpen(false);
    // On a phone this would raise the keyboard over the conversation.
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  };
  const showNew = () => show(conversation.turns?.length === 0 ? sessionId : crypto.randomUUID());
  const send = (text: string) => void chat.send(sessionId, text);
  const remove = (row: Row) => {
    const wasOpen = row.sessionId === sessionId;
    const at = rows.indexOf(row);
    const next = rows[at + 1] ?? rows[at - 1];
    if (!next) show(crypto.randomUUID());
    else if (wasOpen) goTo(next.sessionId);
    // What was never stored has nothing to undo.
    if (row.updatedAt) chat.remove({ sessionId: row.sessionId, title: row.title, wasOpen });
  };
  const undo = () => {
    const { removal } = chat;
    chat.keep();
    if (removal?.wasOpen) show(removal.sessionId);
  };
  const escape = () => {
    if (drawerOpen) setDrawerOpen(false);
    else if (document.activeElement?.closest(".inspector")) closePanel();
    else if (running) chat.stop(sessionId);
    else document.querySelector<HTMLElement>('.sessions [aria-current="page"]')?.focus();
  };

  useEffect(() => void chat.open(sessionId), [chat, sessionId]);
  useEffect(() => {
    document.title = `${title} · Lockgate`;
  }, [title]);
  useKeys({ n: showNew, i: togglePanel, Escape: escape });
  useVisits(chat, sessionId);

  return (
    <div class={drawerOpen ? "app drawer-open" : "app"}>
      <nav class="side" aria-label="Sessions">
        <header>
          <h1>
            <Mark /> Lockgate
          </h1>
          <button type="button" class="plain" title="New session (n)" onClick={showNew}>
            <Plus /> New session
          </button>
        </header>
        {chat.problem && <ProblemBox problem={chat.problem} onRetry={() => void chat.refresh()} />}
        <SessionList
          rows={rows}
          openId={sessionId}
          isListed={chat.isListed}
          isRunning={(id) => chat.isRunning(id)}
          onOpen={show}
          onDelete={remove}
        />
        <footer>
          <Legend />
          <button type="button" class="bare" onClick={() => setSettingsOpen(true)}>
            <Gear /> {look.settings.open}
          </button>
        </footer>
      </nav>
      <div class="toast" role="status">
        {chat.removal && (
          <>
            <span>Deleted “{chat.removal.title}”</span>
            <button type="button" class="plain" onClick={undo}>
              Undo
            </button>
          </>
        )}
      </div>
      <button
        type="button"
        class="shade"
        aria-label="Close sessions"
        onClick={() => setDrawerOpen(false)}
      />
      <main>
        <header class="bar">
          <button
            type="button"
            class="bare"
            aria-label="Show sessions"
            aria-expanded={drawerOpen}
            onClick={() => setDrawerOpen(true)}
          >
            <Menu />
          </button>
          <h2>{title}</h2>
          <button
            type="button"
            class="bare inside"
            ref={panelButton}
            title={look.panel.open}
            aria-label={look.panel.label}
            aria-expanded={panelOpen}
            onClick={togglePanel}
          >
            <Inside />
          </button>
        </header>
        <ConversationView
          key={sessionId}
          conversation={conversation}
          running={running}
          onExample={send}
          onRetry={() => void chat.reopen(sessionId)}
        />
        <Composer
          draft={conversation.draft}
          running={running}
          field={field}
          onWrite={(draft) => chat.write(sessionId, draft)}
          onSend={send}
          onStop={() => chat.stop(sessionId)}
        />
      </main>
      {panelOpen && <LazyPanel agent={agent} slot={{ sessionId }} version={version} />}
      {settingsOpen && <LazySettings {...settings} onClose={() => setSettingsOpen(false)} />}
    </div>
  );
}

const legend = [
  ["n", "new"],
  ["↑↓", "move"],
  ["Enter", "open"],
  ["Del", "delete"],
  ["Esc", "stop"],
  ["i", "inside"],
] as const;

function Legend() {
  return (
    <p class="legend">
      {legend.map(([key, deed]) => (
        <span key={key}>
          <kbd>{key}</kbd> {deed}
        </span>
      ))}
    </p>
  );
}

/** Keys that work wherever the focus is; letters only while nobody is typing. */
function useKeys(keys: Readonly<Record<string, () => void>>): void {
  // Before the page is painted: a key that is pressed at once must not be lost.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = keys[event.key];
      if (!action || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = event.target instanceof Element && event.target.matches("input, textarea, select");
      if (isTyping && event.key !== "Escape") return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

/** Leaving the page deletes what was removed; coming back reads what other tabs have written. */
function useVisits(chat: Chat, sessionId: string): void {
  useEffect(() => void chat.start(), [chat]);
  useEffect(() => {
    const leave = () => chat.flush();
    const turn = () => {
      if (document.hidden) return leave();
      void chat.refresh();
      void chat.reopen(sessionId);
    };
    addEventListener("pagehide", leave);
    document.addEventListener("visibilitychange", turn);
    return () => {
      removeEventListener("pagehide", leave);
      document.removeEventListener("visibilitychange", turn);
    };
  }, [chat, sessionId]);
}
