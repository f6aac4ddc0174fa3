// What the page says about the model and the store in use. Each sentence must be true for them.
import type { StoreName } from "../settings/choices.ts";
import { look } from "./start.ts";

export const privacy = {
  engine: look.engine,
  demoName: look.demo.model,
  demo: look.demoAnswers,
  stores: {
    indexeddb: look.demo.store,
    localstorage: "localStorage",
    memory: "Memory",
  } satisfies Record<StoreName, string>,
  kept: {
    indexeddb: look.keptHere,
    localstorage: "Every session is kept in this browser, in localStorage.",
    memory: "Sessions are only in memory: they are gone when this page is closed or loaded again.",
  } satisfies Record<StoreName, string>,
  here: (model: string, host: string) =>
    `${model} answers, from a server on this machine. What you write, images and results of tools are sent to ${host}. This page cannot know whether that server sends them on.`,
  away: (model: string, host: string, isOpen: boolean) =>
    `${model} answers, at ${host}. What you write, images, results of tools and notes about you leave this device: they are sent to ${host}${isOpen ? ", and without encryption" : ""}.`,
  workerName: (host: string) => `Agent at ${host}`,
  worker: (host: string) =>
    `The agent runs in a worker at ${host}, and every session is kept there, not in this browser. What you write leaves this device. The worker chooses the model.`,
} as const;
