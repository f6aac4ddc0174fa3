// What the page says about an error, by its code. Other errors are shown in the words of the engine.
import type { ErrorCode } from "lockgate";
import { page } from "../app/in-use.ts";
import type { Problem } from "../session/turn.ts";

type Words = (problem: Problem) => Partial<Problem>;

const inSettings = "in the settings";
const otherModel: Words = () => ({ hint: `Try again later, or choose another model ${inSettings}.`, isForSettings: true });
const checkModel: Words = () => ({ hint: `Check the model and its address ${inSettings}.`, isForSettings: true });

const words: { readonly [Code in ErrorCode]?: Words } = {
  STORE_QUOTA: () => ({
    message: `The storage is full: ${page.inUse.store} takes nothing more.`,
    hint: `Delete sessions that you do not need, or choose another storage ${inSettings}.`,
    isForSettings: true,
  }),
  STORE_UNAVAILABLE: () => ({
    hint: `If the browser forbids this site to store data, allow it, or choose another storage ${inSettings}.`,
    isForSettings: true,
  }),
  OPTIONS: () => ({ isForSettings: true }),
  MODEL_AUTH: ({ message, hint }) => {
    const { keyless } = page.inUse;
    if (!message.includes("refuses the key")) return { hint, isForSettings: true };
    // The error may be of an earlier visit, with another key, so it keeps its own message.
    const todo = keyless ? `The key for ${keyless} was not kept in this browser: type it again` : "Check the key";
    return { hint: `${todo} ${inSettings}.`, isForSettings: true };
  },
  MODEL_RATE_LIMIT: otherModel,
  MODEL_OVERLOADED: otherModel,
  MODEL_TIMEOUT: otherModel,
  MODEL_NETWORK: () => ({ isForSettings: true }),
  MODEL_BAD_REQUEST: checkModel,
  MODEL_FAILED: checkModel,
};

/** The problem in the words of this page. A worker's agent has no settings here, so its own words are shown. */
export function explained(problem: Problem): Problem {
  return page.inUse.worker ? problem : { ...problem, ...words[problem.code as ErrorCode]?.(problem) };
}
