// Helpers for stories in a page.
import { customModel, textOf } from "/dist/entry/browser.js";

/** A model that answers every question with a text that contains the question. */
export const echo = (prefix = "you said ") =>
  customModel({
    id: "echo",
    async *generate({ messages }) {
      yield {
        type: "text",
        text: prefix + textOf(messages.findLast(({ role }) => role === "user")),
      };
    },
  });

/** The error that a promise rejects with, as plain data. */
export async function rejection(promise) {
  try {
    await promise;
  } catch ({ code, message, hint, retryable }) {
    return { code, message, hint, retryable };
  }
  throw new Error("the promise did not reject");
}

/** The texts of a session, oldest first. */
export const texts = async (agent, slot) =>
  (await agent.history(slot)).map((message) => textOf(message));

export const batch = (revision, put, rest = {}) => ({
  revision,
  put: Object.entries(put).map(([key, text]) => ({ key, value: new TextEncoder().encode(text) })),
  remove: [],
  ...rest,
});

/** The text under a key of a store, or null. */
export async function textUnder(store, key) {
  const [record] = await store.get([key]);
  return record && new TextDecoder().decode(record.value);
}

/** A request of IndexedDB as a promise. */
export const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Replaces a method until the returned function is called. `instead` gets the original. */
export function replaced(owner, name, instead) {
  const original = owner[name];
  owner[name] = function (...args) {
    return instead.call(this, (...own) => original.apply(this, own.length > 0 ? own : args), ...args);
  };
  return () => (owner[name] = original);
}

/** Random text, which a disk cannot compress. */
export function noise(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return Array.from(bytes, (byte) => String.fromCharCode(32 + (byte % 95))).join("");
}

/** The same, word by word. */
export const slowEcho = (delayMs) =>
  customModel({
    id: "slow echo",
    async *generate({ messages }, { signal }) {
      const words = `you said ${textOf(messages.findLast(({ role }) => role === "user"))}`.split(/(?<= )/);
      for (const text of words) {
        await new Promise((resolve) => setTimeout(resolve, delayMs));
        if (signal.aborted) return;
        yield { type: "text", text };
      }
    },
  });
