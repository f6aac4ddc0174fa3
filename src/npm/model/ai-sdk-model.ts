// Wraps an AI SDK language model. Specifications v2, v3 and v4 differ in names and in the form of the usage numbers.

import { LockgateError } from "../errors.js";
import { marked } from "../values/internals.js";
import { textOf } from "../values/text.js";
import type { Block, BlockOf, Model, ModelDelta, ModelRequest, Msg } from "../types.js";

/** The members of an AI SDK model that we use. */
interface SdkModel {
  /** "v2", "v3" or "v4". */
  readonly specificationVersion: string;
  /** The name of the model. */
  readonly modelId: string;
  /** Starts an answer. */
  readonly doStream: (...args: any) => unknown;
}

/** A part of an AI SDK stream. Part types that we do not use are ignored. */
type StreamPart = { readonly type: string; readonly [member: string]: any };

const VERSIONS = ["v2", "v3", "v4"];

/** Makes a model from any AI SDK language model (specification v2, v3 or v4). */
export function aiSdkModel(model: SdkModel, options: { readonly contextWindow?: number } = {}): Model {
  const { specificationVersion, modelId } = model ?? ({} as SdkModel);
  if (typeof model?.doStream !== "function" || !VERSIONS.includes(specificationVersion)) {
    throw new LockgateError("OPTIONS", "aiSdkModel needs an AI SDK language model of specification v2, v3 or v4", {
      hint: 'aiSdkModel(createAnthropic({ apiKey })("claude-…"))',
    });
  }
  async function* generate(request: ModelRequest, { signal }: { signal: AbortSignal }): AsyncGenerator<ModelDelta> {
    const asked = { ...callOptions(request, specificationVersion), abortSignal: signal };
    const { stream } = (await model.doStream(asked)) as { stream: ReadableStream<StreamPart> };
    yield* deltasOf(stream, modelId);
  }
  const { contextWindow } = options;
  return marked<Model>({ id: modelId }, { kind: "model", id: modelId, contextWindow, repaired: true, generate });
}

function callOptions({ system, messages, tools, generate }: ModelRequest, version: string): object {
  const { temperature, topP, maxTokens, toolChoice, extra } = generate;
  const prompt = messages.flatMap((message) => promptOf(message, version));
  const choice = typeof toolChoice === "string" ? { type: toolChoice } : toolChoice && { type: "tool", toolName: toolChoice.name };
  return {
    prompt: system === "" ? prompt : [{ role: "system", content: system }, ...prompt],
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: "function", ...tool })), ...(choice && { toolChoice: choice }) }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(extra !== undefined && { providerOptions: extra }),
  };
}

function promptOf({ role, content }: Msg, version: string): object[] {
  if (role === "tool") return [{ role: "tool", content: content.filter((block) => block.type === "tool_result").map(toolResult) }];
  const parts = content.flatMap((block) => partOf(block, version));
  return parts.length === 0 ? [] : [{ role: role === "assistant" ? "assistant" : "user", content: parts }];
}

function partOf(block: Block, version: string): object[] {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text }];
    case "thinking": {
      // Thinking of other providers is left out: this provider cannot verify its signature.
      const providerOptions = parsed(block.signature);
      return providerOptions === undefined ? [] : [{ type: "reasoning", text: block.thinking, providerOptions }];
    }
    case "tool_use": {
      const providerOptions = block.provider?.["aiSdk"];
      return [{ type: "tool-call", toolCallId: block.id, toolName: block.name, input: block.input, ...(providerOptions !== undefined && { providerOptions }) }];
    }
    case "tool_result":
      return [];
    default:
      return [filePart(block, version)];
  }
}

function filePart({ source, type, name }: Exclude<Block, BlockOf<"text" | "thinking" | "tool_use" | "tool_result">>, version: string): object {
  const guess = { image: "image/*", audio: "audio/mpeg", video: "video/mp4", file: "application/pdf" }[type];
  const mediaType = source.mediaType ?? guess;
  const plain = source.type === "url" ? new URL(source.url) : source.data;
  const tagged = source.type === "url" ? { type: "url", url: plain } : { type: "data", data: plain };
  return { type: "file", mediaType, data: version === "v4" ? tagged : plain, ...(name !== undefined && { filename: name }) };
}

function toolResult(block: Block): object {
  const { id, name, output, state } = block as BlockOf<"tool_result">;
  const value = textOf(output) || "(no output)";
  return { type: "tool-result", toolCallId: id, toolName: name, output: { type: state === "success" ? "text" : "error-text", value } };
}

async function* deltasOf(stream: ReadableStream<StreamPart>, model: string): AsyncGenerator<ModelDelta> {
  const reader = stream.getReader();
  const begun = new Map<string, number>();
  const indexOf = (id: string): number => begun.get(id) ?? (begun.set(id, begun.size), begun.size - 1);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield* deltaOf(next.value, indexOf, begun, model);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function* deltaOf(part: StreamPart, indexOf: (id: string) => number, begun: ReadonlyMap<string, number>, model: string): Generator<ModelDelta> {
  switch (part.type) {
    case "text-delta":
      return yield { type: "text", text: part["delta"] };
    case "reasoning-start":
    case "reasoning-delta":
    case "reasoning-end": {
      const signature = part["providerMetadata"] === undefined ? {} : { signature: JSON.stringify(part["providerMetadata"]) };
      return yield { type: "thinking", text: part["delta"] ?? "", ...signature };
    }
    case "tool-input-start":
      if (part["providerExecuted"] !== true) yield { type: "tool-call", index: indexOf(part["id"]), id: part["id"], name: part["toolName"] };
      return;
    case "tool-input-delta":
      if (begun.has(part["id"])) yield { type: "tool-call", index: indexOf(part["id"]), arguments: part["delta"] };
      return;
    case "tool-call": {
      if (part["providerExecuted"] === true) return;
      // The input was streamed before, unless the model does not stream inputs.
      const [id, streamed] = [part["toolCallId"] as string, begun.has(part["toolCallId"])];
      const aiSdk = part["providerMetadata"];
      const provider = aiSdk === undefined ? {} : { provider: { aiSdk, model } };
      return yield { type: "tool-call", index: indexOf(id), id, name: part["toolName"], arguments: streamed ? "" : part["input"], ...provider };
    }
    case "finish":
      yield { type: "usage", usage: usageOf(part["usage"] ?? {}) };
      return yield { type: "finish", reason: finishOf(part["finishReason"]?.unified ?? part["finishReason"], begun.size > 0) };
    case "error":
      throw part["error"];
  }
}

/** Token counts are numbers in specification v2, and objects of numbers since v3. */
function usageOf({ inputTokens, outputTokens, cachedInputTokens }: Record<string, any>): { inputTokens?: number; outputTokens?: number; cachedTokens?: number } {
  const [input, output, cached] = [inputTokens?.total ?? inputTokens, outputTokens?.total ?? outputTokens, inputTokens?.cacheRead ?? cachedInputTokens];
  return {
    ...(typeof input === "number" && { inputTokens: input }),
    ...(typeof output === "number" && { outputTokens: output }),
    ...(typeof cached === "number" && { cachedTokens: cached }),
  };
}

function finishOf(reason: unknown, called: boolean): "stop" | "tool-calls" | "length" | "filter" {
  if (reason === "length" || reason === "tool-calls") return reason;
  if (reason === "content-filter") return "filter";
  if (reason === "error") throw new LockgateError("MODEL_OVERLOADED", "the provider stopped the answer with an error", { hint: "try again later" });
  return called ? "tool-calls" : "stop";
}

function parsed(signature: string | undefined): object | undefined {
  try {
    const value: unknown = JSON.parse(signature ?? "");
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
