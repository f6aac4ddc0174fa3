// What a visit needs once one can write: it is loaded as soon as the page is up, in one file.
import "./overlays.css";

export { notesOf } from "./by-rules.ts";
export { fileName, imagesOf, save } from "./files.ts";
export { Hits } from "./hits.tsx";
export { MenuItems } from "./menu-items.tsx";
export { readInsight } from "./read-insight.ts";
export { RenameDialog } from "./rename-dialog.tsx";
export { dayAtLock, drawing } from "./shown.ts";
export { Turns } from "./turns.tsx";
