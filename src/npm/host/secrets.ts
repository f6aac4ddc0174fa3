// The secrets that a model's requests contain, and how they are found in what its provider answers.

import { SecretFilter } from "./secret-filter.js";
import { KnownSecrets, joined } from "./secret-search.js";
import type { Needle } from "./secret-search.js";

/** How many keys are remembered if the key changes. Secrets of the options are never forgotten. */
const MOST_KEYS = 64;

/** Shorter values are not removed, because they could be ordinary words of a reply: keys and the like, and any other value. */
const SHORTEST_KEY = 6;
const SHORTEST = 8;

/** Values that local servers ask for in place of a key. They are no secrets, and are words of ordinary replies. */
const PLACEHOLDERS = new Set(["ollama", "lm-studio", "lmstudio", "not-needed", "no-key", "no-key-required", "sk-no-key-required", "unused", "placeholder", "required"]);

/** Names of headers and query parameters whose value is a key, also a short one. */
const OF_KEYS = /auth|key|token|secret|passw|cookie|credential|signature|^sig$|^code$/i;

/** Words before a key in a header. */
const SCHEMES = /^(bearer|basic|token|apikey|digest|negotiate)$/i;

/** The secrets of one model. Their number is bounded, and each is remembered in all its forms or not at all. */
export class Secrets {
  readonly #fixed: Needle[] = [];
  readonly #keys = new Map<string, readonly Needle[]>();
  #known: KnownSecrets | undefined;

  /** Remembers a key. If the key changes often, the oldest keys are forgotten. */
  add(key: string): void {
    const known = this.#keys.get(key);
    // A known key becomes the newest again.
    this.#keys.delete(key);
    this.#keys.set(key, known ?? formsOf(key, SHORTEST_KEY));
    while (this.#keys.size > MOST_KEYS) this.#keys.delete(this.#keys.keys().next().value!);
    if (known === undefined) this.#known = undefined;
  }

  /** Remembers a value of the options for ever. */
  keep(value: string, shortest = SHORTEST): void {
    this.#fixed.push(...formsOf(value, shortest));
    this.#known = undefined;
  }

  /** Remembers the value of a header or a query parameter, and its parts: a key often follows a word such as `Bearer`, or a name. */
  keepNamed(name: string, value: string): void {
    const shortest = OF_KEYS.test(name) ? SHORTEST_KEY : SHORTEST;
    const words = value.split(/[\s;,"']+/).filter((word) => !SCHEMES.test(word));
    const behindNames = words.flatMap((word) => /^[^=]+=(.+[^=].*)$/.exec(word)?.[1] ?? []);
    for (const part of new Set([value, ...words, ...behindNames])) this.keep(part, shortest);
  }

  /** The secrets that are known now. */
  known(): KnownSecrets {
    return (this.#known ??= new KnownSecrets([...this.#fixed, ...[...this.#keys.values()].flat()]));
  }

  /** The text without the secrets. */
  text(text: string): string {
    return this.known().text(text);
  }

  /** A filter for one response. */
  filter(): SecretFilter {
    return new SecretFilter(this.known());
  }
}

/** The forms of a secret that differ in more than escapes: itself, and in base64. */
function formsOf(secret: string, shortest: number): Needle[] {
  const plain = secret.trim();
  if (plain.length < shortest || PLACEHOLDERS.has(plain.toLowerCase())) return [];
  const forms = new Set([plain, ...base64Forms(plain).filter(({ length }) => length >= SHORTEST)]);
  return [...forms].map((form) => [...form].map((letter) => letter.codePointAt(0)!));
}

/**
 * A secret in base64, for each of the three positions in a group of bytes, without characters that depend on
 * neighbouring bytes.
 */
function base64Forms(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret);
  return [0, 1, 2].flatMap((shift) => {
    const shifted = joined([new Uint8Array(shift), bytes]);
    const text = btoa(Array.from(shifted, (byte) => String.fromCharCode(byte)).join("")).replace(/=+$/, "");
    const from = shift === 0 ? 0 : shift + 1;
    const whole = shifted.length % 3 === 0 ? text : text.slice(0, -1);
    const form = whole.slice(from);
    return [form, form.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
