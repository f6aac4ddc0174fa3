// How many bytes a page loads for the least program that answers, compressed as they travel.
import zlib from "node:zlib";
import { pageFiles } from "../bundle.mjs";

export async function measure(name) {
  const files = await pageFiles(name);
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 11 };
  const sum = (of) => files.reduce((bytes, file) => bytes + of(file).length, 0);
  return { bundle: sum((file) => zlib.brotliCompressSync(file, { params })), "bundle.raw": sum((file) => file) };
}
