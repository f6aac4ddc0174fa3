// The time from the first import to the end of the first call, in a new process.
import { Script, question } from "../script.mjs";

export async function measure(name) {
  const start = performance.now();
  const { open } = await import("../engines/index.mjs");
  const engine = await open(name, { script: new Script() });
  await engine.call("first", question(0));
  return { cold: performance.now() - start };
}
