// What stories in a page are told with.
import { customModel, textOf } from "/dist/entry/browser.js";

/** A model that answers every question with a text made of it. */
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

/** What a promise rejects with, as plain data. */
export async function rejection(promise) {
  try {
    await promise;
  } catch ({ code, message, hint, retryable }) {
    return { code, message, hint, retryable };
  }
  throw new Error("it was expected to reject");
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

/** Makes a method do something else until the answer is called; `instead` is given the original. */
export function replaced(owner, name, instead) {
  const original = owner[name];
  owner[name] = function (...args) {
    return instead.call(this, (...own) => original.apply(this, own.length > 0 ? own : args), ...args);
  };
  return () => (owner[name] = original);
}

/** Text that a disk cannot make smaller. */
export function noise(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return Array.from(bytes, (byte) => String.fromCharCode(32 + (byte % 95))).join("");
}

/** The same, a word at a time. */
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
