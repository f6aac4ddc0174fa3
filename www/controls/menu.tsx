// A button with a menu.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { MenuItems } from "../app/lazy.tsx";

export interface MenuItem {
  readonly label: string;
  readonly run: () => void;
}

export interface MenuButtonProps {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly tabIndex?: number;
  readonly children: ComponentChildren;
}

export function MenuButton({ label, items, tabIndex = 0, children }: MenuButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const choose = (item: MenuItem) => {
    close();
    item.run();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="bare"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        tabIndex={tabIndex}
        onClick={() => setOpen(!isOpen)}
      >
        {children}
      </button>
      {isOpen && <MenuItems items={items} onChoose={choose} onClose={close} />}
    </>
  );
}
