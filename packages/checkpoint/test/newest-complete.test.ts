import { expect, test } from "vitest";
import {
  checkpointName,
  completeCheckpoints,
  newestComplete,
  parseCheckpointName,
} from "@trireme/checkpoint";

const marker = (step: number) =>
  JSON.stringify({ version: 1, step, files: [{ name: "model.safetensors", size: 10 }] });
const entry = (step: number, attempt = 0, size = 10) => ({
  name: checkpointName(step, attempt),
  files: [
    { name: "model.safetensors", size },
    { name: "COMPLETE", size: 70 },
  ],
  marker: marker(step),
});

test("the newest by number, not by name", () => {
  expect(newestComplete([entry(99_999_999), entry(100_000_000), entry(5)])).toBe(100_000_000);
  expect(
    completeCheckpoints([entry(5, 2), entry(5, 10), entry(5)]).map(({ name }) => name),
  ).toEqual(["step-00000005.10", "step-00000005.2", "step-00000005"]);
});

test("falls back past checkpoints that are cut short, incomplete, unmarked or mismarked", () => {
  const good = entry(10);
  const bad = [
    entry(20, 0, 9),
    { ...entry(21), files: [] },
    { ...entry(22), marker: undefined },
    { ...entry(23), marker: "" },
    { ...entry(24), marker: marker(24).slice(0, -1) },
    { ...entry(25), marker: marker(24) },
    { ...entry(26), marker: JSON.stringify({ version: 2, step: 26, files: [] }) },
    { ...entry(27), marker: JSON.stringify({ version: 1, step: 27, files: [{ name: "x" }] }) },
    { ...entry(28), marker: "null" },
    { ...entry(29), name: ".step-00000029.tmp" },
    { ...entry(30), name: "step-30" },
    { name: "latest", files: [], marker: undefined },
  ];
  expect(newestComplete([...bad, good])).toBe(10);
  expect(newestComplete(bad)).toBeUndefined();
  expect(newestComplete([])).toBeUndefined();
});

test("names parse to what they were made from", () => {
  for (const [step, attempt] of [
    [0, 0],
    [120, 0],
    [120, 3],
    [2 ** 53 - 1, 1],
  ] as const) {
    const name = checkpointName(step, attempt);
    expect(parseCheckpointName(name)).toEqual({ name, step, attempt });
  }
  for (const name of [
    "step-1",
    "step-000000001",
    "step-00000001.0",
    "step-00000001.",
    "xstep-00000001",
  ]) {
    expect(parseCheckpointName(name)).toBeUndefined();
  }
});
