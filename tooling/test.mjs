// Every test from source, then, after a build, against dist; closes with the sum of both tallies:
//
//   node tooling/test.mjs [VITEST-ARGUMENT...]
//
// Ends with exit code 1 if a test failed, a run died before it could count, or nothing was run.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const args = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "trireme-test-"));
const sum = { passed: 0, failed: 0, skipped: 0 };

try {
  vitest("from source", {});
  const built = spawnSync("pnpm", ["--silent", "build:quiet"], { cwd: root, stdio: "inherit" });
  if (built.status === 0) vitest("from dist", { TEST_DIST: "1" });
  else sum.failed++;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
if (sum.failed > 0 || sum.passed === 0) process.exitCode = 1;

/** Runs Vitest once and adds its counts; a run that leaves no counts is a failure. */
function vitest(title, more) {
  console.log(`\nTests ${title}`);
  const file = join(folder, `${title}.json`);
  const env = { ...process.env, ...more, TALLY_FILE: file };
  const { status } = spawnSync("pnpm", ["exec", "vitest", "run", ...args], {
    cwd: root,
    env,
    stdio: "inherit",
  });
  let count;
  try {
    count = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    count = { passed: 0, failed: 1, skipped: 0 };
  }
  for (const key of Object.keys(sum)) sum[key] += count[key];
  if (status !== 0 && count.failed === 0) sum.failed++;
}
