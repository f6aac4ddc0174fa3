// Takes out of what a provider sends every secret that was sent to it.

const encoder = new TextEncoder();
const REPLACED = "[redacted]";

/** As many secrets as are remembered; keys that change with every request push out the oldest. */
const MOST = 64;

/** Shorter values would take ordinary words out of an answer. */
const SHORTEST = 8;

/** The secrets that a model has sent so far, in every form in which they could come back. */
export class Secrets {
  readonly #forms = new Map<string, Uint8Array>();
  #longest = 0;

  /** Remembers a secret: plain, as a URL, JSON and base64 have it. */
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

  /** A text without them. */
  text(text: string): string {
    for (const form of this.#forms.keys()) text = text.replaceAll(form, REPLACED);
    return text;
  }

  /** A filter for one stream of bytes. */
  filter(): Filter {
    return new Filter([...this.#forms.values()], this.#longest);
  }
}

/** Bytes in, bytes out, without the secrets, however they are cut. */
export class Filter {
  readonly #forms: readonly Uint8Array[];
  readonly #longest: number;
  #held: Uint8Array = new Uint8Array();

  constructor(forms: readonly Uint8Array[], longest: number) {
    this.#forms = forms;
    this.#longest = longest;
  }

  /** What can be said by now: an end that may be the beginning of a secret is held back. */
  push(bytes: Uint8Array): Uint8Array {
    const clean = this.#clean(this.#held.length === 0 ? bytes : joined([this.#held, bytes]));
    const cut = clean.length - this.#begun(clean);
    this.#held = clean.slice(cut);
    return clean.subarray(0, cut);
  }

  /** What was held back, at the end. */
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

  /** How many bytes at the end are the beginning of a secret. */
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

/** A secret inside JSON: as we write it, as PHP does, and as Go does. */
function jsonForms(secret: string): string[] {
  const form = JSON.stringify(secret).slice(1, -1);
  const hex = (letter: string): string => `\\u00${letter.charCodeAt(0).toString(16)}`;
  return [form, form.replaceAll("/", "\\/"), form.replace(/[&<>]/g, hex)];
}

/** A secret in base64 at each of the three places where a group of bytes can begin, without what its neighbours decide. */
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
