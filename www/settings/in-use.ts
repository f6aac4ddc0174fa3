// Describes the model and the store that the settings choose.
import type { InUse } from "../app/in-use.ts";
import { privacy } from "../text/privacy.ts";
import type { Choices, Key } from "./choices.ts";

export function inUseOf(choices: Choices, key: Key): InUse {
  const { provider, baseUrl, model, store } = choices;
  const shared = { store: privacy.stores[store], worker: "" };
  const start = `${privacy.engine} ${privacy.kept[store]}`;
  if (provider === "demo") {
    return { ...shared, model: privacy.demoName, privacy: `${start} ${privacy.demo}`, keyless: "" };
  }
  const host = hostOf(baseUrl);
  const where = isLoopback(baseUrl) ? privacy.here(model, host) : privacy.away(model, host, baseUrl.startsWith("http:"));
  const keyless = choices.needsKey && key.value === "" ? host : "";
  return { ...shared, model: `${model} · ${host}`, privacy: `${start} ${where}`, keyless };
}

/** The agent of a worker: this page chooses neither its model nor its store. */
export function inUseAt(url: string): InUse {
  const { host } = new URL(url, document.baseURI);
  return { model: privacy.workerName(host), privacy: privacy.worker(host), store: host, keyless: "", worker: host };
}

export function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : address;
}

/** Whether an address leads to this machine. */
export function isLoopback(address: string): boolean {
  const name = URL.canParse(address) ? new URL(address).hostname : "";
  return /^(127\.\d+\.\d+\.\d+|\[::1\]|(.+\.)?localhost)$/.test(name);
}
