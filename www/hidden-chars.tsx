// Characters that hide themselves or turn text around, made visible where a person decides by what stands there.
import type { ComponentChildren } from "preact";
import { talk } from "./text/talk.ts";

/** Controls (but for tab and line feed), soft hyphen, fillers, zero width, bidi, variation selectors, tags. */
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/u;

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

/** The text with a label in place of every character that would not be seen. */
export function Visible({ text }: { readonly text: string }) {
  const parts: ComponentChildren[] = [];
  let plain = "";
  for (const char of text) {
    if (!hidden.test(char)) {
      plain += char;
      continue;
    }
    if (plain) parts.push(plain);
    parts.push(label(char));
    plain = "";
  }
  return <>{[...parts, plain]}</>;
}

/** A value as JSON: in lines, or in one where that is short enough. */
export function jsonOf(value: unknown, shortest = 0): string {
  const line = JSON.stringify(value) ?? "";
  return line.length <= shortest ? line : (JSON.stringify(value, null, 2) ?? "");
}

function label(char: string): ComponentChildren {
  const point = char.codePointAt(0) ?? 0;
  const code = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
  const name = names.find(([from, to]) => point >= from && point <= to)?.[2] ?? "invisible";
  return (
    <mark class="hidden-char" title={talk.hiddenChar(code, name)}>
      {code}
    </mark>
  );
}
