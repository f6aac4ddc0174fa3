// Tests with the testing build, which can be made to trap.
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { inRoot } from "../../../src/build/run.mjs";
import { tell } from "./project.mjs";

const dist = path.resolve(process.env.LOCKGATE_TESTING_DIST ?? inRoot("target/testing-dist"));

/** The URL of a file of the testing build. */
export const at = (file) => pathToFileURL(path.join(dist, file)).href;

/** A story test with the testing build. `given.wasm` is the URL of its module `runtime/wasm.js`. */
export function story(name, work, given = {}) {
  const modules = { lockgate: at(given.entry ?? "entry/node.js"), testing: at("testing/testing.js") };
  test(name, () => tell(work, { wasm: at("runtime/wasm.js"), ...given }, modules));
}
