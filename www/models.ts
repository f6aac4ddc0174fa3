// The models of providers, loaded when one was chosen: the demo needs no network.
import { anthropic, gemini, openai } from "lockgate";
import type { Model } from "lockgate";
import type { Choices, Key } from "./settings/choices.ts";

const providers = { openai, anthropic, gemini };

export function modelOf(provider: keyof typeof providers, choices: Choices, key: Key): Model {
  const { baseUrl, model, contextWindow } = choices;
  return providers[provider]({
    model,
    ...(baseUrl && { baseUrl }),
    ...(contextWindow && { contextWindow }),
    // A function: the key stays in this closure and is asked for when it is needed.
    ...(key.value && { apiKey: () => key.value }),
  });
}
