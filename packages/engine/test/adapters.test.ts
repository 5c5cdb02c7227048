import { decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import type { ResolvedRun } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import { expect, test } from "vitest";
import { gpt, llama } from "./equality.ts";
import {
  type Degrees,
  learningRate,
  smallBatch,
  smallRun,
  trainSteps,
  withRuntime,
} from "./small-run.ts";

const every = ["query", "key", "value", "output", "up", "down"] as const;
const forms = [
  ["GPT-2", gpt, every],
  ["Llama", { ...llama, tied: false }, [...every, "gate"] as const],
] as const;

function adaptedRun(form: object, targets: readonly string[], plan: Degrees = {}): ResolvedRun {
  return smallRun(plan, { ...form, adapter: { rank: 3, targets, base: "full" } } as object);
}

/** Tensors of a snapshot's model file by name. */
function tensors({
  files,
}: Snapshot): Map<string, { shape: readonly number[]; values: Float32Array }> {
  const { bytes } = files.find(({ name }) => name === "model.safetensors")!;
  return new Map(
    decodeSafetensors(bytes).tensors.map(({ name, shape, data }) => [
      name,
      { shape, values: new Float32Array(Uint8Array.from(data).buffer) },
    ]),
  );
}
