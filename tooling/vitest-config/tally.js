import { writeFileSync } from "node:fs";

/**
 * Ends a run with the plain line `N passed, N failed, N skipped`. With TALLY_FILE set the counts go
 * to that file as JSON instead, for a caller that sums several runs.
 */
export default class Tally {
  onTestRunEnd(modules, unhandledErrors) {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state in count) count[state]++;
      }
      // A file that does not load has no tests, but is a failure all the same.
      if (module.state() === "failed" && module.errors().length > 0) count.failed++;
    }
    const file = process.env.TALLY_FILE;
    if (file) {
      writeFileSync(file, JSON.stringify(count));
      return;
    }
    // Printed last, after Vitest's own summary.
    process.once("exit", () => {
      process.stdout.write(
        `\n${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`,
      );
    });
  }
}
