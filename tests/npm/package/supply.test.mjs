// The supply chain of the package: the sources of its parts, their licences, and the packed files.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inRoot } from "../../../src/build/run.mjs";
import { printed, project, tarball } from "../support/project.mjs";

/** Licences that are allowed for code in the wasm. */
const compiledIn = new Set(["MIT", "Apache-2.0", "Unlicense", "BSD-3-Clause", "Unicode-3.0", "Zlib"]);

/** Licences that are allowed for tools. The tools are not part of the package. */
const usedOnly = new Set([...compiledIn, "ISC", "0BSD", "BSD-2-Clause", "MPL-2.0", "CC0-1.0", "CC-BY-4.0", "BlueOak-1.0.0", "LGPL-3.0-or-later", "AFL-2.1", "WTFPL"]);

/** Whether an SPDX licence expression is allowed: all parts of AND, one part of OR. */
function isAllowed(expression, allowed) {
  const plain = expression.replace(/\//g, " OR ").trim();
  const tokens = plain.match(/\(|\)|[\w.+-]+/g) ?? [];
  const either = () => {
    let good = both();
    while (tokens[0] === "OR") tokens.shift(), (good = both() || good);
    return good;
  };
  const both = () => {
    let good = one();
    while (tokens[0] === "AND") tokens.shift(), (good = one() && good);
    return good;
  };
  const one = () => {
    if (tokens[0] !== "(") return allowed.has(tokens.shift());
    tokens.shift();
    const good = either();
    tokens.shift();
    return good;
  };
  return either();
}

test("licence expressions are read by the rules of SPDX", () => {
  assert.ok(isAllowed("GPL-3.0 OR MIT", compiledIn));
  assert.ok(isAllowed("(MIT OR GPL-3.0) AND Unicode-3.0", compiledIn));
  assert.ok(isAllowed("MIT/Apache-2.0", compiledIn));
  assert.ok(!isAllowed("MIT AND GPL-3.0", compiledIn));
  assert.ok(!isAllowed("GPL-3.0", compiledIn));
});

test("P-03: every crate comes from crates.io with a checksum and under a permissive licence", async () => {
  const args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", "wasm32-unknown-unknown"];
  const { packages } = JSON.parse(await printed("cargo", args, { cwd: inRoot() }));
  const lock = fs.readFileSync(inRoot("Cargo.lock"), "utf8");
  const locked = lock.split("[[package]]").slice(1).map((text) => Object.fromEntries([...text.matchAll(/^(\w+) = "(.*)"$/gm)].map(([, key, value]) => [key, value])));
  const foreign = locked.filter(({ name }) => name !== "lockgate");
  assert.ok(foreign.length > 20);
  assert.deepEqual(foreign.filter(({ source, checksum }) => !/^registry\+.*\/crates\.io-index$/.test(source) || !/^[0-9a-f]{64}$/.test(checksum)), []);
  assert.deepEqual(packages.filter(({ license }) => !isAllowed(license ?? "none", compiledIn)).map(({ name, license }) => `${name}: ${license}`), []);
});

// The one package of Node 20.0.0 names no licence in its manifest; Node's is MIT.
const unnamed = new Set(["node_modules/node-20-first"]);

for (const file of ["package-lock.json", "benches/package-lock.json", "tests/packaging/package-lock.json"]) {
  test(`P-03: what ${file} installs has its hash, no address, and a licence that lets us use it`, () => {
    const { packages } = JSON.parse(fs.readFileSync(inRoot(file), "utf8"));
    const all = Object.entries(packages).filter(([name]) => name !== "");
    assert.ok(all.length > 20);
    assert.deepEqual(all.filter(([, { integrity, resolved }]) => !/^sha512-/.test(integrity ?? "") || resolved !== undefined).map(([name]) => name), []);
    const odd = all.filter(([name, { license }]) => !unnamed.has(name) && !isAllowed(license ?? "none", usedOnly));
    assert.deepEqual(odd.map(([name, { license }]) => `${name}: ${license}`), []);
  });
}

test("P-01: nothing in the repository publishes automatically, and the release steps use provenance and no token", () => {
  const { scripts } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  assert.deepEqual(Object.entries(scripts).filter(([, command]) => /npm publish/.test(command)), []);
  const steps = fs.readFileSync(inRoot("CONTRIBUTING.md"), "utf8");
  for (const word of ["--provenance", "--ignore-scripts", "trusted publish", "npm audit signatures", "reproducible"]) assert.ok(steps.includes(word), `CONTRIBUTING.md does not speak of ${word}`);
});

test("the tarball is small and has each needed file once, with no source, test, map or address of this machine", async () => {
  const listing = (await printed("tar", ["-tzf", await tarball()])).trim().split("\n").map((name) => name.replace(/^package\//, ""));
  // The package has the wasm three times: as one file, as two parts for pages, and as text. A program loads only one of these. It has the
  // scripts twice: as modules, and as one file for pages without a bundler.
  assert.ok(fs.statSync(await tarball()).size < 2_300_000, `${fs.statSync(await tarball()).size} bytes`);
  assert.deepEqual(listing.filter((name) => !/^(dist\/[\w/-]+\.(d\.ts|js)|dist\/lockgate\.min\.js|dist\/(core|page|rest)\.wasm|package\.json|README\.md|LICENSE|CHANGELOG\.md|llms\.txt|www\/docs\/[a-z-]+\.md|www\/screenshot\.png|benches\/results\.svg)$/.test(name)), []);
  assert.deepEqual(listing.filter((name) => name.endsWith(".wasm")).sort(), ["dist/core.wasm", "dist/page.wasm", "dist/rest.wasm"]);
  const folder = path.join(await project(), "node_modules/lockgate");
  const texts = listing.filter((name) => /\.(js|ts|json|md|txt)$/.test(name)).map((name) => [name, fs.readFileSync(path.join(folder, name), "utf8")]);
  assert.deepEqual(texts.filter(([, text]) => text.includes(inRoot())).map(([name]) => name), []);
});

test("nothing in the package compiles code from text: edge workers and strict policies forbid it", async () => {
  const dist = path.join(await project(), "node_modules/lockgate/dist");
  const scripts = fs.readdirSync(dist, { recursive: true }).filter((name) => name.endsWith(".js"));
  assert.ok(scripts.length > 60);
  const maker = /\beval\s*\(|(?<![.\w])Function\s*\(/;
  assert.deepEqual(scripts.filter((name) => maker.test(fs.readFileSync(path.join(dist, name), "utf8"))), []);
});
