// The page: the session list, the open session, the panel, and the keyboard shortcuts.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Bar } from "../conversation/top-bar.tsx";
import { useChat } from "./chat.ts";
import type { Chat } from "./chat.ts";
import { Composer } from "../conversation/composer.tsx";
import { ConversationView } from "../conversation/conversation.tsx";
import { Drawer } from "../sessions/drawer.tsx";
import type { Deeds } from "../conversation/turn-view.tsx";
import { Panel, RenameDialog, Settings } from "./lazy.tsx";
import { addressOf, goTo, usePlace } from "./route.ts";
import { useSessionDeeds } from "../sessions/session-actions.ts";
import { rowsOf } from "../sessions/session-list.tsx";
import type { SettingsProps } from "../settings/settings.tsx";
import { look } from "../text/start.ts";
import { talk as words } from "../text/sessions.ts";
import { Toasts } from "../controls/toasts.tsx";

export interface AppProps extends Omit<SettingsProps, "agent" | "onClose"> {
  readonly chat: Chat;
}

export function App({ chat, ...settings }: AppProps) {
  useChat(chat);
  const { userId, sessionId, messageId } = usePlace();
  const slot = useMemo(() => ({ userId, sessionId }), [userId, sessionId]);
  const talk = chat.talk(slot);
  const sessions = chat.sessions(userId);
  const field = useRef<HTMLTextAreaElement>(null);
  const searchField = useRef<HTMLInputElement>(null);
  const [drawerOpen, setDrawerOpen] = useState(false);
  const [sideWanted, setSideOpen] = useState<boolean | null>(null);
  const [settingsOpen, setSettingsOpen] = useState(false);
  const sideButton = useRef<HTMLButtonElement>(null);
  const [editedId, setEditedId] = useState("");
  const rows = rowsOf(sessions.infos, sessionId);
  const row = rows.find((one) => one.sessionId === sessionId);
  const title = row?.title ?? "";
  const { tasks, planText } = talk.insight;
  // Until the user opens or closes the panel, it is open if the screen is wide and there are tasks or a plan.
  const isAtWork = tasks.length > 0 || planText !== "";
  const isUseful = isAtWork && matchMedia("(min-width: 1100px)").matches;
  const sideOpen = sideWanted ?? isUseful;

  const show = (id: string, message = "") => {
    goTo(addressOf(userId, id, message));
    setDrawerOpen(false);
    // On a phone the focus would open the keyboard over the conversation.
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  };
  const showNew = () => show(talk.turns?.length === 0 ? sessionId : crypto.randomUUID());
  const edit = (open: boolean) => setEditedId(open && talk.canResend ? sessionId : "");
  const deedsOnRows = useSessionDeeds({ chat, userId, rows, openId: sessionId, show });
  const deeds: Deeds = useMemo(
    () => ({
      resend: (text) => talk.resend(text),
      resume: () => talk.resume(),
      fork: (message) => void chat.fork(slot, message).then((id) => id && show(id)),
      switchBranch: (branch) => void talk.switchBranch(branch),
      cancel: (key) => talk.cancel(key),
      answer: (answer) => talk.answer([answer]),
      edit,
    }),
    [chat, talk],
  );
  const attach = async (files: readonly File[]) => {
    const images = await chat.imagesOf(files);
    talk.images = [...talk.images, ...images];
    chat.redraw();
  };
  const take = async (files: readonly File[]) => {
    await attach(files);
    const documents = files.filter(({ type }) => !type.startsWith("image/"));
    const texts = await Promise.all(documents.map((file) => file.text()));
    const imported = await chat.imported(userId, texts);
    if (imported) show(imported);
    chat.redraw();
  };
  const closeSide = () => {
    setSideOpen(false);
    sideButton.current?.focus();
  };
  const turnSide = () => (sideOpen ? closeSide() : setSideOpen(true));
  const escape = () => {
    if (drawerOpen) setDrawerOpen(false);
    else if (editedId) edit(false);
    else if (document.activeElement?.closest(".panel")) closeSide();
    else if (talk.isRunning) talk.stop();
    else document.querySelector<HTMLElement>('.sessions [aria-current="page"]')?.focus();
  };

  useEffect(() => void talk.open(), [talk]);
  useEffect(() => {
    document.title = `${title} · Lockgate`;
  }, [title]);
  useKeys({
    n: showNew,
    "/": () => searchField.current?.focus(),
    i: turnSide,
    r: () => talk.canResend && talk.resend(),
    e: () => edit(true),
    Escape: escape,
  });
  useVisits(chat, slot);
  const isDropping = useDrop(take);

  return (
    <div class="app" data-drawer={drawerOpen || undefined} data-side={sideOpen || undefined}>
      <Drawer
        chat={chat}
        userId={userId}
        sessions={sessions}
        rows={rows}
        openId={sessionId}
        searchField={searchField}
        onNew={showNew}
        onOpen={show}
        onUser={(user) => {
          if (user !== null) chat.addUser(user);
          goTo(addressOf(user, crypto.randomUUID()));
        }}
        onDelete={deedsOnRows.remove}
        onFiles={take}
        itemsOf={deedsOnRows.itemsOf}
      />
      <button
        type="button"
        class="shade"
        aria-label={words.close}
        onClick={() => {
          setDrawerOpen(false);
          setSideOpen(false);
        }}
      />
      <main>
        <Bar
          title={title}
          items={row?.updatedAt ? deedsOnRows.itemsOf(row) : []}
          drawerOpen={drawerOpen}
          sideOpen={sideOpen}
          onDrawer={() => setDrawerOpen(true)}
          sideButton={sideButton}
          onSide={turnSide}
          onSettings={() => setSettingsOpen(true)}
        />
        <ConversationView
          key={`${userId} ${sessionId}`}
          talk={talk}
          sought={messageId}
          isEdited={editedId === sessionId}
          deeds={deeds}
          onExample={(prompt) => talk.send(prompt)}
        />
        <Composer
          talk={talk}
          field={field}
          onChange={() => chat.redraw()}
          onImages={attach}
          onSend={(text, images) => {
            if (chat.removal?.slot.sessionId === sessionId) chat.keep();
            sessions.unhide(sessionId);
            talk.send(text, images);
          }}
        />
      </main>
      {sideOpen && (
        <aside class="panel" aria-label={look.panel.label}>
          <Panel
            agent={chat.agent}
            slot={slot}
            version={talk.version}
            insight={talk.insight}
            isAtWork={isAtWork}
            takesFocus={sideWanted === true}
          />
        </aside>
      )}
      <Toasts chat={chat} onUndo={deedsOnRows.undo} />
      {deedsOnRows.renamed && (
        <RenameDialog title={deedsOnRows.renamed.title} onTitle={deedsOnRows.rename} />
      )}
      {settingsOpen && (
        <Settings {...settings} agent={chat.agent} onClose={() => setSettingsOpen(false)} />
      )}
      {isDropping && <p class="drop">{words.dropHere}</p>}
    </div>
  );
}

/** Keyboard shortcuts of the page. While the user types, only Escape works. */
function useKeys(keys: Readonly<Record<string, () => void>>): void {
  // A layout effect, so that a key pressed right after the first paint is not lost.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (!action || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping =
        event.target instanceof Element && event.target.matches("input, textarea, select");
      if (isTyping && event.key !== "Escape") return;
      if (document.querySelector("dialog[open]")) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

/** When the page is hidden, removed sessions are deleted. When it is shown again, it reads what has changed. */
function useVisits(chat: Chat, slot: { readonly userId: string | null; readonly sessionId: string }): void {
  useEffect(() => void chat.start(), [chat]);
  useEffect(() => {
    const leave = () => chat.flush();
    const turn = () => (document.hidden ? leave() : void chat.refresh(slot));
    addEventListener("pagehide", leave);
    document.addEventListener("visibilitychange", turn);
    return () => {
      removeEventListener("pagehide", leave);
      document.removeEventListener("visibilitychange", turn);
    };
  }, [chat, slot]);
}

/** Takes files that are dropped on the page. Returns whether files are dragged over it. */
function useDrop(take: (files: readonly File[]) => Promise<void>): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      void take([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  });
  return isOver;
}
