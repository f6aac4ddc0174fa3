// The icons of the page, in the colour of the surrounding text.
import type { ComponentChildren } from "preact";

/** The logo: a lock gate seen from above. */
export const Mark = () => icon(<path d="M4 3v18M20 3v18M4 7l8 5 8-5M8 17.5h8" />);
export const Plus = () => icon(<path d="M12 5v14M5 12h14" />);
export const Menu = () => icon(<path d="M4 7h16M4 12h16M4 17h10" />);
export const Dots = () => icon(<path d="M5 12h.01M12 12h.01M19 12h.01" stroke-width="3" />);
export const Send = () => icon(<path d="M12 19V5M6 11l6-6 6 6" />);
export const Back = () => icon(<path d="M14.5 6l-6 6 6 6" />);
export const Forth = () => icon(<path d="M9.5 6l6 6-6 6" />);
export const Down = () => icon(<path d="M12 5v14M6 13l6 6 6-6" />);
export const Cross = () => icon(<path d="M6 6l12 12M18 6L6 18" />);
export const Lens = () => icon(<path d="M15.5 15.5L20 20M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z" />);
export const Picture = () => icon(<path d="M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01" />);
/** A page with a panel. */
export const Inside = () => icon(<path d="M4 5h16v14H4zM14.5 5v14M17 9h.5M17 12h.5M17 15h.5" />);
export const Gear = () => icon(<path d="M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4" />);
export const Bin = () =>
  icon(<path d="M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 11v5M13.5 11v5" />);
export const Stop = () =>
  icon(<rect x="7" y="7" width="10" height="10" rx="1.5" fill="currentColor" />);

function icon(drawing: ComponentChildren) {
  return (
    <svg class="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" aria-hidden="true">
      {drawing}
    </svg>
  );
}
