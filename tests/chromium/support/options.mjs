// The launch options of every browser in tests.
import fs from "node:fs";
import process from "node:process";
import { inRoot } from "../../../src/build/run.mjs";

/** A host without Web Locks, being neither https nor local. */
export const insecure = "insecure.test";

const settings = JSON.parse(fs.readFileSync(inRoot("tests/browser/webdriver.json"), "utf8"));
const args = [
  ...settings["goog:chromeOptions"].args,
  `--host-resolver-rules=MAP ${insecure} 127.0.0.1`,
];

export const launchOptions = () => ({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args,
});
