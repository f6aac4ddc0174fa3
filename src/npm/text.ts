// The words of messages.

import type { Block, Msg } from "./types.js";

/** The text of a message or of its blocks, joined; "" if there is none. */
export function textOf(from: Pick<Msg, "content"> | readonly Block[]): string {
  const blocks = "content" in from ? from.content : from;
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}
