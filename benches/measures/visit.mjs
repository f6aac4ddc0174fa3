// The time from navigation until a user can type: the web UI, compared with a page that is only a field.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { serve } from "../../src/build/web/serve.mjs";
import { buildWww } from "../../src/build/web/www.mjs";
import { median } from "../stats.mjs";

const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"];

export async function measure(_, { nVisits }) {
  const bareFolder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-bare-"));
  fs.writeFileSync(path.join(bareFolder, "index.html"), '<!doctype html><title>bare</title><link rel="icon" href="data:,"><label>Say something <textarea aria-label="Message"></textarea></label>');
  const [page, bare] = [await serve(await buildWww()), await serve(bareFolder)];
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
  try {
    const all = { first: [], again: [], bare: [] };
    for (let n = 0; n < nVisits; n++) {
      all.bare.push((await visits(browser, bare.url))[0]);
      const [first, again] = await visits(browser, page.url);
      all.first.push(first);
      all.again.push(again);
    }
    const of = (list, what) => median(list.map((visit) => visit[what]));
    return {
      "visit.bare": of(all.bare, "usable"),
      "visit.paint": of(all.first, "paint"),
      "visit.usable": of(all.first, "usable"),
      "visit.again": of(all.again, "usable"),
    };
  } finally {
    await browser.close();
    await Promise.all([page.close(), bare.close()]);
    fs.rmSync(bareFolder, { recursive: true, force: true });
  }
}

/** Two visits of a new profile: the milliseconds from navigation to the first paint, and until a user can type. */
async function visits(browser, url) {
  const context = await browser.newContext();
  try {
    await context.addInitScript(() => {
      globalThis.usable = new Promise((resolve) => {
        const look = () => document.querySelector('textarea[aria-label="Message"]') && resolve(performance.now());
        new MutationObserver(look).observe(document, { childList: true, subtree: true });
      });
    });
    const page = await context.newPage();
    const visit = async () => {
      await page.goto(url);
      return page.evaluate(async () => {
        const usable = await globalThis.usable;
        const seen = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
        const paint = seen() ?? (await new Promise((resolve) => new PerformanceObserver(() => seen() !== undefined && resolve(seen())).observe({ type: "paint", buffered: true })));
        return { usable, paint };
      });
    };
    return [await visit(), await visit()];
  } finally {
    await context.close();
  }
}
