import { test } from "vitest";
import { deepSeek, gpt, llama } from "../equality.ts";
import { expectSameLamb } from "../lamb.ts";

test.each([
  ["ZeRO 1", { dp: 4, zero: 1 }, gpt],
  ["ZeRO 2 behind computing", { dp: 2, zero: 2, overlapDataParallel: true }, llama],
  ["ZeRO 1, tp2, pp2", { dp: 2, tp: 2, pp: 2, zero: 1, sequenceParallel: true }, gpt],
  ["a stage's copies on two ranks, ZeRO 2", { pp: 2, dp: 2, schedule: "dualpipe", zero: 2 }, gpt],
  ["context parallelism, ZeRO 2", { cp: 2, pp: 2, zero: 2 }, llama],
  ["experts on two ranks", { dp: 2, ep: 2, zero: 1 }, deepSeek],
  ["each expert on two ranks", { dp: 4, ep: 2, etp: 2, zero: 1 }, deepSeek],
  ["states on the host", { dp: 2, zero: 2, offload: "optimizer" }, llama],
] as const)(
  "LAMB trains as on one rank: %s",
  (_, plan, form) => expectSameLamb(plan, form, 20),
  240_000,
);
