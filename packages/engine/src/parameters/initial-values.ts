/**
 * First values of a tensor. They depend on the seed and its global name alone: every layout of the
 * same model begins with the same weights.
 */
import { createRng, hash32 } from "@trireme/core";
import type { ParameterSpec } from "./parameter.ts";
import { runsOf } from "../memory/slice.ts";

/** Fills a rank's part of the tensor. */
export function initialize(values: Float32Array, spec: ParameterSpec, seed: number): void {
  if ("constant" in spec.initial) {
    values.fill(spec.initial.constant);
    return;
  }
  const letters = Array.from(spec.name, (letter) => letter.codePointAt(0)!);
  const rng = createRng(hash32(seed, ...letters));
  const { deviation } = spec.initial;
  // Numbers of other ranks' parts are drawn too: the whole tensor is one sequence.
  let at = 0;
  for (const { whole, part, length } of runsOf(spec.dims, spec.slice)) {
    for (; at < whole; at++) rng.normal();
    for (let i = 0; i < length; i++, at++) values[part + i] = rng.normal() * deviation;
  }
}
