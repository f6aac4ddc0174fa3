// Removes secrets that were sent to a provider from the responses of that provider.

const encoder = new TextEncoder();
const REPLACED = "[redacted]";

/** How many forms of secrets are remembered. If the key changes with every request, the oldest are forgotten. */
const MOST = 64;

/** Shorter values are not removed, because they could be ordinary words of a reply. */
const SHORTEST = 8;

/** The secrets that a model has sent so far, in all forms in which they can appear in a response. */
export class Secrets {
  readonly #forms = new Map<string, Uint8Array>();
  #longest = 0;

  /** Remembers a secret: plain, and as it appears in URLs, JSON and base64. */
  add(secret: string): void {
    if (secret.length < SHORTEST) return;
    for (const form of [secret, encodeURIComponent(secret), ...jsonForms(secret), ...base64Forms(secret)]) {
      if (form.length < SHORTEST) continue;
      this.#forms.delete(form);
      this.#forms.set(form, encoder.encode(form));
    }
    while (this.#forms.size > MOST) this.#forms.delete(this.#forms.keys().next().value!);
    this.#longest = Math.max(0, ...[...this.#forms.values()].map(({ length }) => length));
  }

  /** The text without the secrets. */
  text(text: string): string {
    for (const form of this.#forms.keys()) text = text.replaceAll(form, REPLACED);
    return text;
  }

  /** A filter for one stream of bytes. */
  filter(): Filter {
    return new Filter([...this.#forms.values()], this.#longest);
  }
}

/** Removes the secrets from a stream of bytes, also if a secret is split between chunks. */
export class Filter {
  readonly #forms: readonly Uint8Array[];
  readonly #longest: number;
  #held: Uint8Array = new Uint8Array();

  constructor(forms: readonly Uint8Array[], longest: number) {
    this.#forms = forms;
    this.#longest = longest;
  }

  /** The bytes that can be passed on now. An end that may be the start of a secret is held back. */
  push(bytes: Uint8Array): Uint8Array {
    const clean = this.#clean(this.#held.length === 0 ? bytes : joined([this.#held, bytes]));
    const cut = clean.length - this.#begun(clean);
    this.#held = clean.slice(cut);
    return clean.subarray(0, cut);
  }

  /** The bytes that were held back, at the end of the stream. */
  end(): Uint8Array {
    const held = this.#held;
    this.#held = new Uint8Array();
    return held;
  }

  #clean(bytes: Uint8Array): Uint8Array {
    for (const form of this.#forms) {
      const parts: Uint8Array[] = [];
      let from = 0;
      for (let at = find(bytes, form, 0); at >= 0; at = find(bytes, form, from)) {
        parts.push(bytes.subarray(from, at), encoder.encode(REPLACED));
        from = at + form.length;
      }
      if (from > 0) bytes = joined([...parts, bytes.subarray(from)]);
    }
    return bytes;
  }

  /** How many bytes at the end are the start of a secret. */
  #begun(bytes: Uint8Array): number {
    for (let n = Math.min(this.#longest - 1, bytes.length); n > 0; n--) {
      if (this.#forms.some((form) => n < form.length && isAt(bytes, form, bytes.length - n, n))) return n;
    }
    return 0;
  }
}

function find(bytes: Uint8Array, form: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(form[0]!, from); at >= 0; at = bytes.indexOf(form[0]!, at + 1)) {
    if (at + form.length > bytes.length) return -1;
    if (isAt(bytes, form, at, form.length)) return at;
  }
  return -1;
}

function isAt(bytes: Uint8Array, form: Uint8Array, at: number, length: number): boolean {
  for (let n = 0; n < length; n++) if (bytes[at + n] !== form[n]) return false;
  return true;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A secret as JSON text: in the notations of JavaScript, PHP and Go. */
function jsonForms(secret: string): string[] {
  const form = JSON.stringify(secret).slice(1, -1);
  const hex = (letter: string): string => `\\u00${letter.charCodeAt(0).toString(16)}`;
  return [form, form.replaceAll("/", "\\/"), form.replace(/[&<>]/g, hex)];
}

/**
 * A secret in base64, for each of the three positions in a group of bytes, without characters that depend on
 * neighbouring bytes.
 */
function base64Forms(secret: string): string[] {
  const bytes = encoder.encode(secret);
  return [0, 1, 2].flatMap((shift) => {
    const shifted = joined([new Uint8Array(shift), bytes]);
    const text = btoa(String.fromCharCode(...shifted)).replace(/=+$/, "");
    const from = shift === 0 ? 0 : shift + 1;
    const whole = shifted.length % 3 === 0 ? text : text.slice(0, -1);
    const form = whole.slice(from);
    return [form, form.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
