// Files that are dropped on the page.
import { useEffect, useState } from "preact/hooks";
import { said } from "../text/conversation.ts";

export interface DropZoneProps {
  readonly onFiles: (files: readonly File[]) => Promise<void>;
}

/** Takes files that are dropped on the page, and covers it while they are dragged over it. */
export function DropZone({ onFiles }: DropZoneProps) {
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
      void onFiles([...(event.dataTransfer?.files ?? [])]);
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
  return isOver && <p class="drop">{said.dropHere}</p>;
}
