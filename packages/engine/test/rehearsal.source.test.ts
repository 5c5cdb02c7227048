import { expect, test } from "vitest";
import { idleFractions } from "./rehearsal.ts";

// How near the waits come to what replay says is a matter of a quiet machine: test/slow holds it to 10 %.
test("on four stages ZB-H1 idles less than 1F1B", async () => {
  const plain = await idleFractions({ pp: 4, schedule: "1f1b" });
  const split = await idleFractions({ pp: 4, schedule: "zb-h1" });
  expect(split.measured).toBeLessThan(plain.measured);
  expect(split.predicted).toBeLessThan(plain.predicted);
});
