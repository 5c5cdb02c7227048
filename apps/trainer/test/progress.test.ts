import { TimelineBuilder } from "@trireme/timeline";
import { expect, it } from "vitest";
import { Progress } from "../src/report/progress.ts";
import { Capture, widest } from "./capture.ts";

const timeline = new TimelineBuilder().finish();

/** A run of `steps` steps of one second each. */
function show(terminal: Capture, steps: number): void {
  let time = 0;
  const progress = new Progress(terminal, () => time);
  progress.show({ kind: "start", from: 0, steps });
  for (let step = 0; step < steps; step++) {
    time += 1;
    const rest = { learningRate: 1, gradientNorm: 1, timeline };
    progress.show({
      kind: "step",
      step,
      loss: 3 - step / steps,
      tokens: 1000,
      seconds: 1,
      ...rest,
    });
    if (step === 4) progress.show({ kind: "evaluate", step: 5, loss: 2.5, tokens: 10 });
  }
  progress.show({ kind: "stop", step: steps, reason: "done" });
}

it("prints a plain line every five seconds, and the last", () => {
  const terminal = new Capture();
  show(terminal, 12);
  expect(terminal.stderr.split("\n")).toEqual([
    "step  1/12  loss 3.000  1 k tokens/s  eta 11 s",
    "step  6/12  loss 2.583  val 2.500  1 k tokens/s  eta 6 s",
    "step 11/12  loss 2.167  val 2.500  1 k tokens/s  eta 1 s",
    "step 12/12  loss 2.083  val 2.500  1 k tokens/s",
    "",
  ]);
});

it("draws one line over itself on a screen, with a bar as wide as there is room for", () => {
  const terminal = new Capture({ live: true, columns: 120 });
  show(terminal, 4);
  const frames = terminal.stderr.split("\r").filter((frame) => frame !== "");
  expect(frames).toHaveLength(5);
  expect(frames[1]).toMatch(/^step 2\/4 {2}loss 2\.750 {2}1 k tokens\/s {2}eta 2 s +━{16}─{16}/);
  // It stays where it is, whatever else the line says.
  expect(new Set(frames.slice(0, 4).map((frame) => frame.search(/[━─]/))).size).toBe(1);
  expect(frames[4]).toBe("\u001b[K");
  expect(terminal.stderr).not.toContain("\n");
});

it("leaves the bar out where there is no room", () => {
  const terminal = new Capture({ live: true, columns: 40 });
  show(terminal, 4);
  expect(terminal.stderr).not.toContain("━");
});

it("never draws a line that would wrap", () => {
  for (const columns of [10, 20, 41, 80]) {
    const terminal = new Capture({ live: true, columns });
    show(terminal, 4);
    const frames = terminal.stderr.replaceAll("\u001b[K", "").split("\r");
    expect(widest(frames.join("\n"))).toBeLessThan(columns);
  }
});
