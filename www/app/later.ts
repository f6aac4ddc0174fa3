// Code that every visit needs after the user can type. It is one file, loaded as soon as the page is shown.
import "../controls/overlays.css";

export { notesOf } from "../agent/demo-notes.ts";
export { fileName, imagesOf, save } from "../controls/file-transfer.ts";
export { Hits } from "../sessions/search-results.tsx";
export { MenuItems } from "../controls/menu-items.tsx";
export { readInsight } from "../session/read-session-state.ts";
export { RenameDialog } from "../sessions/rename-dialog.tsx";
export { dayAtLock, drawing } from "../agent/demo-results.ts";
export { Turns } from "../conversation/turn-list.tsx";
