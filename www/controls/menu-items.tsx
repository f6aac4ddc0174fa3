// The menu of a button: arrows move, Enter chooses, Esc closes.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { MenuItem } from "./menu.tsx";

export interface MenuItemsProps {
  readonly items: readonly MenuItem[];
  readonly onChoose: (item: MenuItem) => void;
  readonly onClose: () => void;
}

/** Shown in the browser's top layer, because the scrolling list around it would cut it off. */
export function MenuItems({ items, onChoose, onClose }: MenuItemsProps) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const menu = list.current;
    const button = menu?.previousElementSibling?.getBoundingClientRect();
    if (!menu || !button) return;
    menu.showPopover();
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(button.right - width, innerWidth - width - 8))}px`;
    menu.style.top = `${button.bottom + height + 8 > innerHeight ? Math.max(8, button.top - height - 4) : button.bottom + 4}px`;
    menu.querySelector("button")?.focus();
  }, []);
  useEffect(() => {
    const away = (event: Event) => {
      if (event.target instanceof Node && !list.current?.contains(event.target)) onClose();
    };
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, []);
  const press = (event: KeyboardEvent) => {
    event.stopPropagation();
    const buttons = [...(list.current?.children ?? [])] as HTMLElement[];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const n = buttons.length;
    const targets = new Map([
      ["ArrowDown", (at + 1) % n],
      ["ArrowUp", (at - 1 + n) % n],
      ["Home", 0],
      ["End", n - 1],
    ]);
    const target = targets.get(event.key);
    if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (target !== undefined) buttons[target]?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <div class="menu" role="menu" popover="manual" ref={list} onKeyDown={press}>
      {items.map((item) => (
        <button key={item.label} type="button" role="menuitem" tabIndex={-1} onClick={() => onChoose(item)}>
          {item.label}
        </button>
      ))}
    </div>
  );
}
