import { expect, test } from "vitest";
import { idleFractions } from "./rehearsal.ts";

test("on four stages ZB-H1 idles less than 1F1B, each within 10 % of what replay says", async () => {
  const plain = await idleFractions({ pp: 4, schedule: "1f1b" });
  const split = await idleFractions({ pp: 4, schedule: "zb-h1" });
  expect(split.measured).toBeLessThan(plain.measured);
  for (const { measured, predicted } of [plain, split]) {
    expect(Math.abs(measured - predicted)).toBeLessThan(0.1 * predicted);
  }
});
