// The words of messages.

import type { Block, Msg } from "./types.js";

/** The text of a message or of its blocks, joined; "" if there is none. */
export function textOf(from: Pick<Msg, "content"> | readonly Block[]): string {
  const blocks = "content" in from ? from.content : from;
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** JSON text without halves of characters, which Rust cannot hold: each becomes the replacement character, and `flag` is told. */
export function wellFormed(json: string, flag: () => void = () => {}): string {
  // JSON.stringify writes a lone surrogate as an escape, and only those.
  return json.replace(/(\\+)u(d[89a-f][0-9a-f]{2})/gi, (whole, slashes: string) => {
    if (slashes.length % 2 === 0) return whole;
    flag();
    return `${slashes.slice(1)}\ufffd`;
  });
}
