// The page: the session list, the open session, the panel, and the keyboard shortcuts.
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Bar } from "../conversation/top-bar.tsx";
import { useChat } from "./chat.ts";
import type { Chat } from "./chat.ts";
import { Composer } from "../conversation/composer.tsx";
import { ConversationView } from "../conversation/conversation.tsx";
import { Drawer } from "../sessions/drawer.tsx";
import type { Deeds } from "../conversation/turn-view.tsx";
import { DropZone, Panel, RenameDialog, Settings, Toasts } from "./lazy.tsx";
import { page } from "./in-use.ts";
import { addressOf, goTo, goToNew, usePlace } from "./route.ts";
import { useSessionDeeds } from "../sessions/session-actions.ts";
import { rowsOf } from "../sessions/session-list.tsx";
import type { SettingsProps } from "../settings/settings.tsx";
import { look } from "../text/start.ts";
import { talk as words } from "../text/sessions.ts";

export interface AppProps extends Omit<SettingsProps, "agent" | "onClose"> {
  readonly chat: Chat;
}

export function App({ chat, ...settings }: AppProps) {
  useChat(chat);
  const { userId, sessionId, messageId, isNew } = usePlace();
  const slot = useMemo(() => ({ userId, sessionId }), [userId, sessionId]);
  const talk = chat.talk(slot);
  const sessions = chat.sessions(userId);
  const field = useRef<HTMLTextAreaElement>(null);
  const searchField = useRef<HTMLInputElement>(null);
  const [drawerOpen, setDrawerOpen] = useState(false);
  const [sideWanted, setSideOpen] = useState<boolean | null>(null);
  const [settingsOpen, setSettingsOpen] = useState(false);
  const sideButton = useRef<HTMLButtonElement>(null);
  const isLost = talk.isLost(isNew);
  const rows = rowsOf(sessions.infos, isLost ? "" : sessionId);
  const row = rows.find((one) => one.sessionId === sessionId);
  const title = row?.title ?? words.lost;
  page.openSettings = settingsOpen ? null : () => setSettingsOpen(true);
  const { tasks, planText } = talk.insight;
  // Until the user opens or closes the panel, it is open if the screen is wide and there are tasks or a plan.
  const isAtWork = tasks.length > 0 || planText !== "";
  const isUseful = isAtWork && matchMedia("(min-width: 1100px)").matches;
  const sideOpen = sideWanted ?? isUseful;

  const write = () => {
    setDrawerOpen(false);
    // On a phone the focus would open the keyboard over the conversation.
    if (matchMedia("(pointer: fine)").matches) field.current?.focus();
  };
  const show = (id: string, message = "") => {
    goTo(addressOf(userId, id, message));
    write();
  };
  const showNew = (user = userId) => {
    if (isLost || user !== userId || talk.turns?.length !== 0) goToNew(user);
    write();
  };
  const edit = (open: boolean) => {
    talk.edited = open && talk.canResend ? (talk.turns?.at(-1)?.question ?? null) : null;
    chat.redraw();
  };
  const deedsOnRows = useSessionDeeds({ chat, userId, rows, openId: sessionId, show, showNew });
  const deeds: Deeds = useMemo(
    () => ({
      resend: (text) => talk.resend(text),
      retry: (key) => talk.retry(key),
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
    else if (talk.edited !== null) edit(false);
    else if (document.activeElement?.closest(".panel")) closeSide();
    else if (talk.isRunning) talk.stop();
    else document.querySelector<HTMLElement>('.sessions a[tabindex="0"]')?.focus();
  };

  useEffect(() => void talk.open(), [talk]);
  useEffect(() => {
    document.title = `${title} · Lockgate`;
  }, [title]);
  // So that what a person types after a load is text and no shortcut.
  useLayoutEffect(write, []);
  useKeys(field, escape, {
    n: () => showNew(),
    "/": () => searchField.current?.focus(),
    i: turnSide,
  });
  useVisits(chat, slot);

  return (
    <div class="app" data-drawer={drawerOpen || undefined} data-side={sideOpen || undefined}>
      <Drawer
        chat={chat}
        userId={userId}
        sessions={sessions}
        rows={rows}
        openId={sessionId}
        searchField={searchField}
        onNew={() => showNew()}
        onOpen={show}
        onUser={(user) => {
          if (user !== null) chat.addUser(user);
          showNew(user);
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
        />
        <ConversationView
          key={`${userId} ${sessionId}`}
          talk={talk}
          sought={messageId}
          isLost={isLost}
          onNew={() => showNew()}
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
      <DropZone onFiles={take} />
    </div>
  );
}

/**
 * The keyboard shortcuts. Those with one character work only in the list of sessions and in the panel, because elsewhere a person
 * may believe to be typing: there the character goes to the message field. None of them costs or destroys anything.
 */
function useKeys(field: RefObject<HTMLElement | null>, escape: () => void, keys: Readonly<Record<string, () => void>>): void {
  // A layout effect, so that a key pressed right after the first paint is not lost.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { key, target } = event;
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (!(target instanceof Element) || document.querySelector("dialog[open], [popover]")) return;
      const isKey = key === "Escape" || (Object.hasOwn(keys, key) && target.closest(".side, .panel"));
      if (key !== "Escape" && target.matches("input, textarea, select")) return;
      if (isKey) {
        event.preventDefault();
        (keys[key] ?? escape)();
      } else if ([...key].length === 1 && key !== " " && !target.closest(".side, .panel")) field.current?.focus();
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
