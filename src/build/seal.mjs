// Marks the wasm and its glue as of one build, and writes the wasm as text for those who cannot fetch it.
import { createHash } from "node:crypto";
import zlib from "node:zlib";
import { leb } from "./wasm/sections.mjs";

/** The name of the custom section that says of which build a wasm file is. */
const SECTION = "lockgate";

/** What glue and wasm say of themselves: the version, and a hash of what both are made of. */
export function sealOf(version, wasm, glue) {
  const hash = createHash("sha256").update(wasm).update(glue).digest("hex");
  return `${version}-${hash.slice(0, 16)}`;
}

/** The wasm with a custom section that holds the seal: engines skip it, and every bundler carries it along. */
export function sealed(wasm, seal) {
  const name = Buffer.from(SECTION);
  const content = Buffer.concat([leb(name.length), name, Buffer.from(seal)]);
  return Buffer.concat([wasm, Buffer.from([0]), leb(content.length), content]);
}

/** A module with the wasm in it, compressed, as text. */
export function inlined(wasm) {
  const text = zlib.deflateSync(wasm, { level: 9 }).toString("base64");
  return `// Written by \`npm run build\`: core.wasm, deflated, in base64.\nexport const WASM = "${text}";\n`;
}
