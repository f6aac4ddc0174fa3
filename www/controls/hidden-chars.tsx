// Makes invisible characters and direction marks visible, where the user decides by a text.
import type { ComponentChildren } from "preact";
import { said } from "../text/conversation.ts";

/**
 * Controls, soft hyphens, fillers, zero-width and direction marks, tags and variation selectors. A joiner or a selector
 * after an emoji is not hidden: emoji are composed with them.
 */
const hidden =
  /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]|(?<!\p{Extended_Pictographic})\ufe0f|(?<!\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d/gu;

const names: readonly (readonly [from: number, to: number, name: string])[] = [
  [0x00, 0x1f, "control"],
  [0x7f, 0x9f, "control"],
  [0xad, 0xad, "soft hyphen"],
  [0x200b, 0x200d, "zero width"],
  [0x200e, 0x200f, "direction mark"],
  [0x2028, 0x2029, "line separator"],
  [0x202a, 0x202e, "direction override"],
  [0x2060, 0x2064, "zero width"],
  [0x2066, 0x2069, "direction isolate"],
  [0xfeff, 0xfeff, "zero width"],
];

/** The text with a label in place of every invisible character. */
export function Visible({ text }: { readonly text: string }) {
  return <>{visible(text)}</>;
}

export function visible(text: string): ComponentChildren {
  const found = [...text.matchAll(hidden)];
  if (found.length === 0) return text;
  let from = 0;
  const nodes = found.flatMap((match) => {
    const plain = text.slice(from, match.index);
    from = match.index + match[0].length;
    return [plain, label(match[0])];
  });
  return [...nodes, text.slice(from)];
}

/** A value as JSON: in one line if it has at most `shortest` characters, else in several. */
export function jsonOf(value: unknown, shortest = 0): string {
  const line = JSON.stringify(value) ?? "";
  return line.length <= shortest ? line : (JSON.stringify(value, null, 2) ?? "");
}

function label(char: string): ComponentChildren {
  const point = char.codePointAt(0) ?? 0;
  const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
  const name = names.find(([from, to]) => point >= from && point <= to)?.[2] ?? "invisible";
  return (
    <mark class="hidden-char" title={said.hiddenChar(code, name)}>
      {code}
    </mark>
  );
}
