// The bar above the conversation: the title of the session, its menu, settings and the panel button.
import type { RefObject } from "preact";
import { Dots, Gear, Inside, Menu } from "../controls/icons.tsx";
import { MenuButton } from "../controls/menu.tsx";
import type { MenuItem } from "../controls/menu.tsx";
import { page } from "../app/in-use.ts";
import { look } from "../text/start.ts";
import { talk } from "../text/sessions.ts";

export interface BarProps {
  readonly title: string;
  readonly items: readonly MenuItem[];
  readonly drawerOpen: boolean;
  readonly sideOpen: boolean;
  readonly onDrawer: () => void;
  readonly sideButton: RefObject<HTMLButtonElement | null>;
  readonly onSide: () => void;
}

const openSettings = () => page.openSettings?.();

export function Bar(props: BarProps) {
  const { title, items, drawerOpen, sideOpen, sideButton, onDrawer, onSide } = props;
  return (
    <header class="bar">
      <button
        type="button"
        class="bare narrow"
        aria-label={talk.showSessions}
        aria-expanded={drawerOpen}
        onClick={onDrawer}
      >
        <Menu />
      </button>
      <h2 dir="auto">{title}</h2>
      {items.length > 0 && (
        <MenuButton label={talk.more(title)} items={items}>
          <Dots />
        </MenuButton>
      )}
      <span class="room" />
      <button type="button" class="link model" title={page.inUse.privacy} onClick={openSettings}>
        {page.inUse.model}
      </button>
      <button
        type="button"
        class="bare"
        aria-label={look.settings.open}
        title={look.settings.open}
        onClick={openSettings}
      >
        <Gear />
      </button>
      <button
        type="button"
        class="bare"
        ref={sideButton}
        aria-label={look.panel.label}
        title={look.panel.label}
        aria-pressed={sideOpen}
        onClick={onSide}
      >
        <Inside />
      </button>
    </header>
  );
}
