// The compressed bytes that a page loads before the smallest program answers, and later in the background.
import zlib from "node:zlib";
import { laterFiles, pageFiles } from "../bundle.mjs";

export async function measure(name) {
  const [files, later] = [await pageFiles(name), laterFiles(name)];
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 11 };
  const brotli = (file) => zlib.brotliCompressSync(file, { params });
  const sum = (all, of) => all.reduce((bytes, file) => bytes + of(file).length, 0);
  const background = later.length > 0 ? { "bundle.later": sum(later, brotli) } : {};
  return { bundle: sum(files, brotli), "bundle.raw": sum(files, (file) => file), ...background };
}
