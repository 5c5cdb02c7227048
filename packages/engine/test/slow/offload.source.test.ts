import { test } from "vitest";
import { gpt, llama } from "../equality.ts";
import { expectSameBits } from "../offload.ts";

test.each([
  ["one rank", {}, gpt],
  ["ZeRO 3", { dp: 2, zero: 3 }, llama],
  ["BF16 and ZeRO 1", { dp: 2, zero: 1, precision: "bf16" }, llama],
] as const)("states on the host, %s: the same bits, snapshots among them", (_, plan, form) =>
  expectSameBits(plan, form),
);
