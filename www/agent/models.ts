// The models of providers. Loaded when one is chosen, because the demo does not need them.
import { anthropic, gemini, openai } from "lockgate";
import type { Model } from "lockgate";
import type { Choices, Key } from "../settings/choices.ts";

const providers = { openai, anthropic, gemini };

export function modelOf(provider: keyof typeof providers, choices: Choices, key: Key): Model {
  const { baseUrl, model, contextWindow } = choices;
  return providers[provider]({
    model,
    ...(baseUrl && { baseUrl }),
    ...(contextWindow && { contextWindow }),
    // A function, so that the key stays in this closure.
    ...(key.value && { apiKey: () => key.value }),
  });
}
