import { defineConfig } from "vitest/config";

// Workspace packages resolve to their TypeScript sources, so tests need no build.
// TEST_DIST=1 resolves them to dist/ instead: the same tests against what is published, without
// those named *.source.test.ts, whose subject does not change by building.
// TEST_SLOW=1 runs the tests under test/slow/, which the others leave out.
const { TEST_DIST: dist, TEST_SLOW: slow } = process.env;
const conditions = dist ? [] : ["@trireme/source"];

export default defineConfig({
  resolve: { conditions: [...conditions, "module", "browser", "development|production"] },
  // Without "module", which Node does not set either: packages put files there that only bundlers can read.
  ssr: { resolve: { conditions: [...conditions, "node", "development|production"] } },
  test: {
    include: [slow ? "test/slow/**/*.test.ts" : "test/**/*.test.ts"],
    exclude: [...(slow ? [] : ["test/slow/**"]), ...(dist ? ["test/**/*.source.test.ts"] : [])],
    testTimeout: slow ? 600_000 : 60_000,
  },
});
