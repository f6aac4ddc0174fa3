// Tells whether files that were made are newer than what they were made from.
import fs from "node:fs";
import path from "node:path";

/** Whether every output is there and no input (files and folders, all the way down) is newer. */
export function isCurrent(outputs, inputs, isInput = () => true) {
  if (!outputs.every((file) => fs.existsSync(file))) return false;
  const oldest = Math.min(...outputs.map((file) => fs.statSync(file).mtimeMs));
  return newest(inputs, isInput) <= oldest;
}

/** Dates files to when their making began, so that what was edited meanwhile counts as newer. */
export function stampAs(startedMs, files) {
  for (const file of files) fs.utimesSync(file, startedMs / 1000, startedMs / 1000);
}

// A folder's own time counts too: it changes when a file in it is deleted or renamed.
function newest(files, isInput) {
  return Math.max(
    0,
    ...files
      .filter((file) => isInput(file) && fs.existsSync(file))
      .map((file) => {
        const stat = fs.statSync(file);
        if (!stat.isDirectory()) return stat.mtimeMs;
        const inside = fs.readdirSync(file).map((name) => path.join(file, name));
        return Math.max(stat.mtimeMs, newest(inside, isInput));
      }),
  );
}
