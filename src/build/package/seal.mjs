// Marks the wasm and its glue as parts of the same build, and writes the wasm as text for hosts that cannot fetch it.
import { createHash } from "node:crypto";
import zlib from "node:zlib";
import { leb } from "../wasm/sections.mjs";

/** The name of the custom section that names the build of a wasm file. */
const SECTION = "lockgate";

/** The seal of a build: the version, and a hash of wasm and glue. */
export function sealOf(version, wasm, glue) {
  const hash = createHash("sha256").update(wasm).update(glue).digest("hex");
  return `${version}-${hash.slice(0, 16)}`;
}

/** The wasm with a custom section that holds the seal. Engines ignore the section, and bundlers keep it. */
export function sealed(wasm, seal) {
  const name = Buffer.from(SECTION);
  const content = Buffer.concat([leb(name.length), name, Buffer.from(seal)]);
  return Buffer.concat([wasm, Buffer.from([0]), leb(content.length), content]);
}

/** A JavaScript module that contains the wasm as compressed text. */
export function inlined(wasm) {
  const text = zlib.deflateSync(wasm, { level: 9 }).toString("base64");
  return `// Written by \`npm run build\`: core.wasm, deflated, in base64.\nexport const WASM = "${text}";\n`;
}
