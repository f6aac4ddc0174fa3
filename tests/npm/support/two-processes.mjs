// Tests with files that two processes share, one after the other or at the same time.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { packedModule, tell } from "./project.mjs";

async function withFolder(work) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lockgate-shared-"));
  try {
    await work(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** A test of several stories in processes that run one after the other. Each gets the `folder`, and the result of the one before as `told`. */
export function relay(name, ...stories) {
  test(name, () =>
    withFolder(async (folder) => {
      let told = null;
      for (const story of stories) told = (await tell(story, { folder, told })) ?? null;
    }),
  );
}

/**
 * A test with two processes that run at the same time: `here` starts in this process and returns its agent, `there` is a story in
 * another process, and `back` checks in this process what the other one has done.
 */
export function beside(name, { here, there, back }) {
  test(name, () =>
    withFolder(async (folder) => {
      const modules = ["lockgate", "lockgate/testing", "lockgate/stores/node"];
      const parts = await Promise.all(modules.map(packedModule));
      const pack = Object.assign({ assert }, ...parts);
      const agent = await here(pack, folder);
      try {
        const told = await tell(there, { folder });
        await back(pack, agent, told);
      } finally {
        await agent.close();
      }
    }),
  );
}
