import { expect, test, vi } from "vitest";

test("without highs the exact schedules' entry names the command that installs it", async () => {
  vi.doMock("highs", () => {
    throw new Error("not installed");
  });
  const { exactSchedule } = await import("@trireme/schedulers/exact");
  const options = {
    ranks: 2,
    microbatches: 3,
    placement: "v",
    memoryLimit: 2,
    costs: { forward: 1, inputGradient: 1.7, weightGradient: 0.4, pointToPoint: 0.3 },
    alwaysSolve: true,
  } as const;
  await expect(exactSchedule(options)).rejects.toThrow(
    "@trireme/schedulers/exact needs the package highs; install it with: npm install highs@1.15.3",
  );
});
