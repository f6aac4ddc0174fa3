// Presets for the model: local servers and known providers.
import type { ProviderName } from "./choices.ts";

export interface Preset {
  readonly id: string;
  readonly name: string;
  readonly where: "offline" | "here" | "away";
  readonly provider: ProviderName;
  readonly baseUrl: string;
  /** A model that the provider probably has. */
  readonly model: string;
}

export const presets: readonly Preset[] = [
  { id: "demo", name: "Demo model", where: "offline", provider: "demo", baseUrl: "", model: "" },
  here("ollama", "Ollama", 11434, "qwen3"),
  here("llama.cpp", "llama.cpp", 8080, "default"),
  here("lm-studio", "LM Studio", 1234, "qwen3-4b"),
  away("openai", "OpenAI", "https://api.openai.com/v1", "gpt-5-mini"),
  {
    ...away("anthropic", "Anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-5"),
    provider: "anthropic",
  },
  {
    ...away(
      "gemini",
      "Google Gemini",
      "https://generativelanguage.googleapis.com/v1beta",
      "gemini-2.5-flash",
    ),
    provider: "gemini",
  },
  away("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "openrouter/auto"),
  away("mistral", "Mistral", "https://api.mistral.ai/v1", "mistral-small-latest"),
  away("groq", "Groq", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
  away("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "deepseek-chat"),
  away(
    "dashscope",
    "Alibaba DashScope",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    "qwen-plus",
  ),
  away("zai", "Z.ai", "https://api.z.ai/api/paas/v4", "glm-4.6"),
  away("other", "Another, OpenAI-compatible", "", ""),
];

export function presetOf(id: string): Preset {
  const found = presets.find((preset) => preset.id === id) ?? presets.at(-1);
  if (!found) throw new Error("there are no presets");
  return found;
}

function here(id: string, name: string, port: number, model: string): Preset {
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  return { id, name, where: "here", provider: "openai", baseUrl, model };
}

function away(id: string, name: string, baseUrl: string, model: string): Preset {
  return { id, name, where: "away", provider: "openai", baseUrl, model };
}
