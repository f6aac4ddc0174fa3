// Finds out whether built files are newer than their inputs.
import fs from "node:fs";
import path from "node:path";

/** Whether every output exists and no input is newer. Inputs are files, and folders with everything in them. */
export function isCurrent(outputs, inputs, isInput = () => true) {
  if (!outputs.every((file) => fs.existsSync(file))) return false;
  const oldest = Math.min(...outputs.map((file) => fs.statSync(file).mtimeMs));
  return newest(inputs, isInput) <= oldest;
}

/** Sets the time of files to the start of their build, so that inputs that were edited during the build count as newer. */
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
