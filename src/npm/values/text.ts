// The text of messages, and text that Rust can read.

import type { Block, Msg } from "../types.js";

/** The joined text of a message or of blocks; "" if there is no text. */
export function textOf(from: Pick<Msg, "content"> | readonly Block[]): string {
  const blocks = "content" in from ? from.content : from;
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** JSON text without lone surrogates, which Rust cannot represent. Each one becomes the replacement character, and `flag` is called. */
export function wellFormed(json: string, flag: () => void = () => {}): string {
  // JSON.stringify writes lone surrogates, and only these, as escapes.
  return json.replace(/(\\+)u(d[89a-f][0-9a-f]{2})/gi, (whole, slashes: string) => {
    if (slashes.length % 2 === 0) return whole;
    flag();
    return `${slashes.slice(1)}\ufffd`;
  });
}
