// Text in which nothing hides: characters without a shape, and those that turn the direction, are shown by number.
import type { ComponentChildren } from "preact";

/**
 * Controls, soft hyphens, fillers, zero-width and direction marks, tags and variation selectors. The joiner and the
 * selector that emoji are made with are left alone behind one.
 */
const hidden =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]|(?<!\p{Extended_Pictographic})\ufe0f|(?<!\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d/gu;

export function Visible({ text }: { readonly text: string }) {
  return <>{visible(text)}</>;
}

export function visible(text: string): ComponentChildren {
  const found = [...text.matchAll(hidden)];
  if (found.length === 0) return text;
  let from = 0;
  const nodes: ComponentChildren[] = found.flatMap((match) => {
    const plain = text.slice(from, match.index);
    from = match.index + match[0].length;
    return [plain, <mark class="hidden-char">{numberOf(match[0])}</mark>];
  });
  return [...nodes, text.slice(from)];
}

function numberOf(character: string): string {
  const number = character.codePointAt(0) ?? 0;
  return `U+${number.toString(16).toUpperCase().padStart(4, "0")}`;
}
