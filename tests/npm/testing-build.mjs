// Stories told with the build that can be told to trap.
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { inRoot } from "../../src/build/run.mjs";
import { tell } from "./project.mjs";

const dist = path.resolve(process.env.LOCKGATE_TESTING_DIST ?? inRoot("target/testing-dist"));

/** The address of a file of that build. */
export const at = (file) => pathToFileURL(path.join(dist, file)).href;

/** A test that is a story, told with the testing build; `given.wasm` is its module of instances. */
export function story(name, work, given = {}) {
  const modules = { lockgate: at(given.entry ?? "entry/node.js"), testing: at("testing.js") };
  test(name, () => tell(work, { wasm: at("wasm.js"), ...given }, modules));
}
