// Counts tests, from the output of cargo and, as a reporter of `node --test`, from its events.

/** Adds up the last lines of `cargo test` and of wasm-bindgen's runner. */
export function countCargo(output) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const [, passed, failed, ignored] of output.matchAll(
    /test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/g,
  )) {
    total.passed += Number(passed);
    total.failed += Number(failed);
    total.skipped += Number(ignored);
  }
  return total;
}

/** Writes `{ passed, failed, skipped }` as JSON at the end. A default export, because `node --test` requires it. */
export default async function* countEvents(events) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (type === "test:pass" && (data.details?.type === "suite" || isWholeFile(data))) continue;
    if (data.skip !== undefined || data.todo !== undefined) total.skipped += 1;
    else if (type === "test:pass") total.passed += 1;
    else if (!isFailedBelow(data)) total.failed += 1;
  }
  yield JSON.stringify(total);
}

// Node reports a file without tests as one passed test with the name of the file.
const isWholeFile = ({ name, nesting, file }) =>
  nesting === 0 && file !== undefined && file.endsWith(name);

// A suite or test that failed only because a test inside it failed. The inner test is counted already.
const isFailedBelow = ({ details }) => details?.error?.failureType === "subtestsFailed";
