// Code that every visit needs after the user can type. It is one file, loaded as soon as the page is shown.
import "../controls/overlays.css";

export { notesOf } from "../agent/demo-notes.ts";
export { DropZone } from "../controls/drop-zone.tsx";
export { Hits } from "../sessions/search-results.tsx";
export { MenuItems } from "../controls/menu-items.tsx";
export { explained } from "../text/problems.ts";
export { readInsight } from "../session/read-session-state.ts";
export { Lost } from "../conversation/lost.tsx";
export { Toasts } from "../controls/toasts.tsx";
export { Turns } from "../conversation/turn-list.tsx";
