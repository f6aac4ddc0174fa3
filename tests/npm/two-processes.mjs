// Stories over files that two processes share: one after the other, or side by side.
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

/** A test told by processes that come one after the other: each sees the `folder`, and what the one before it answered as `told`. */
export function relay(name, ...stories) {
  test(name, () =>
    withFolder(async (folder) => {
      let told = null;
      for (const story of stories) told = (await tell(story, { folder, told })) ?? null;
    }),
  );
}

/**
 * A test told by two processes that live at the same time: `here` begins in this one and answers with its agent, `there`
 * is a story of another process, and `back` looks from here at what that has done.
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
