// The line above the conversation: which session it is, and what can be done with it.
import { Dots, Menu, Tasks } from "./icons.tsx";
import { MenuButton } from "./menu.tsx";
import type { MenuItem } from "./menu.tsx";
import { talk } from "./text/talk.ts";

export interface BarProps {
  readonly title: string;
  readonly items: readonly MenuItem[];
  readonly drawerOpen: boolean;
  readonly sideOpen: boolean;
  readonly onDrawer: () => void;
  readonly onSide: () => void;
}

export function Bar({ title, items, drawerOpen, sideOpen, onDrawer, onSide }: BarProps) {
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
      <h2>{title}</h2>
      {items.length > 0 && (
        <MenuButton label={talk.more(title)} items={items}>
          <Dots />
        </MenuButton>
      )}
      <span class="room" />
      {/* The button of the settings stands here. */}
      <button
        type="button"
        class="bare"
        aria-label={talk.side}
        title={talk.showSide}
        aria-pressed={sideOpen}
        onClick={onSide}
      >
        <Tasks />
      </button>
    </header>
  );
}
