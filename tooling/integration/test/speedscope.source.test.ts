/** The traces that we write open in speedscope, in a real browser (Debian's Chromium, where it is). */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { simulateStep } from "@trireme/simulator";
import { type Timeline, toChromeTrace } from "@trireme/timeline";
import { defineCluster } from "@trireme/topology";
import { defineModel, definePlan } from "@trireme/workload";
import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { serve } from "./static-server.ts";

const browserPath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const release = join(
  dirname(createRequire(import.meta.url).resolve("speedscope/package.json")),
  "dist/release",
);

/** Every rank of a step on 64 GPUs. */
function simulated(): Timeline {
  const model = defineModel({ layers: 16, hidden: 2048, heads: 16, vocab: 50_304, context: 1024 });
  const plan = definePlan(model, { tp: 4, pp: 4, dp: 4, globalBatch: 32, zero: 1 });
  const cluster = defineCluster({ host: "dgx-h100", hosts: 8 });
  return simulateStep({ model, plan, cluster, unfold: true }).timeline;
}

test.skipIf(!existsSync(browserPath))("speedscope opens the Chrome trace of a step", async () => {
  const trace = toChromeTrace(simulated(), { name: "one step" });
  const server = await serve(release, { "/trace.json": trace });
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1200, height: 500 } });
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("dialog", (dialog) => {
      problems.push(dialog.message());
      void dialog.dismiss();
    });
    await page.goto(`${server.url}/index.html#profileURL=${server.url}/trace.json`);
    // Its toolbar names the profile of the first thread once the import has succeeded.
    await page
      .getByText(/rank 0/)
      .first()
      .waitFor({ timeout: 30_000 });
    const screenshot = process.env["SCREENSHOT"];
    if (screenshot !== undefined) await page.screenshot({ path: screenshot });
    expect(problems).toEqual([]);
  } finally {
    await browser.close();
    server.close();
  }
});

test("the trace keeps to the Chrome trace event format", () => {
  const timeline = simulated();
  const { traceEvents } = JSON.parse(toChromeTrace(timeline)) as {
    traceEvents: Record<string, unknown>[];
  };
  // Format: Trace Event Format (Google, 2016), "Complete Events" and "Metadata Events".
  for (const event of traceEvents) {
    expect(event["name"]).toBeTypeOf("string");
    expect(Number.isInteger(event["pid"])).toBe(true);
    expect(Number.isInteger(event["tid"]) || event["name"] === "process_name").toBe(true);
    if (event["ph"] === "M") {
      expect(event["args"]).toBeTypeOf("object");
      continue;
    }
    expect(["X", "s", "f", "t"]).toContain(event["ph"]);
    expect(event["ts"]).toBeGreaterThanOrEqual(0);
    if (event["ph"] === "X") expect(event["dur"]).toBeGreaterThanOrEqual(0);
  }
  expect(traceEvents.filter(({ ph }) => ph === "X")).toHaveLength(timeline.length);
});
