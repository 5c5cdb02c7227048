import fc from "fast-check";
import { TriremeError } from "@trireme/core";
import { type Cluster, defineCluster } from "@trireme/topology";
import { type Model, type Plan, definePlan, model } from "@trireme/workload";

/** Models that differ in form: learned positions and tied tables, grouped keys, an odd number of layers. */
export const models: readonly Model[] = ["gpt3-175b", "llama3-8b", "gpt-530b"].map((n) => model(n));

/** Clusters of several generations, all large enough for `randomPlan`. */
export const clusters: readonly Cluster[] = [
  "dgx-a100-80",
  "dgx-h100",
  "dgx-v100-32",
  "dgx-b200",
].map((host) => defineCluster({ host, hosts: 512 }));

/** Legal plans of a model, every option varied. */
export function randomPlan(m: Model): fc.Arbitrary<Plan> {
  return fc
    .record(
      {
        tp: fc.constantFrom(1, 2, 4, 8),
        pp: fc.constantFrom(1, 2, 3, 4, 8),
        dp: fc.constantFrom(1, 2, 3, 16),
        cp: fc.constantFrom(1, 1, 2),
        vpp: fc.constantFrom(1, 1, 2, 3),
        microbatch: fc.constantFrom(1, 2),
        rounds: fc.constantFrom(1, 2, 5),
        sequence: fc.constantFrom(2048, 4096),
        sequenceParallel: fc.boolean(),
        scatterGather: fc.boolean(),
        recompute: fc.constantFrom("none", "selective", "operators", "full"),
        precision: fc.constantFrom("bf16", "fp16", "fp32"),
        matrixPrecision: fc.constantFrom("fp8", "int8", "fp4"),
        gradientPrecision: fc.constantFrom("fp32", "bf16"),
        reductionPrecision: fc.constantFrom("fp32", "bf16"),
        gradientExchange: fc.constantFrom("reduce-scatter", "all-reduce"),
        zero: fc.constantFrom(0, 1, 2, 3),
        flashAttention: fc.boolean(),
        flashVersion: fc.constantFrom(1, 2, 3),
        vocabParallelLoss: fc.boolean(),
        fusedSoftmax: fc.boolean(),
        fusedNorm: fc.boolean(),
        fusedElementwise: fc.boolean(),
        fusedLoss: fc.boolean(),
        fusedRotary: fc.boolean(),
        gatheredCopies: fc.boolean(),
        momentPrecision: fc.constantFrom("fp32", "bf16"),
        dropout: fc.constantFrom(0, 0.1),
        overlapDataParallel: fc.boolean(),
        overlapGradientProducts: fc.boolean(),
        overlapTensorParallel: fc.boolean(),
        overlapPointToPoint: fc.boolean(),
        schedule: fc.constantFrom("1f1b", "gpipe"),
        uneven: fc.boolean(),
      } as const,
      { requiredKeys: ["tp", "pp", "dp", "vpp", "microbatch", "rounds"] },
    )
    .map(({ rounds, uneven, schedule, ...o }) => {
      const vpp = o.pp > 1 ? o.vpp : 1;
      const count = o.pp * vpp;
      const even = Math.floor(m.layers / count);
      const stageLayers = Array.from({ length: count }, (_, i) =>
        i === count - 1 ? m.layers - even * (count - 1) : even,
      );
      return legal(m, {
        ...o,
        vpp,
        globalBatch: o.dp * o.microbatch * o.pp * rounds,
        ...(vpp === 1 && schedule !== undefined ? { schedule } : {}),
        ...(uneven === true ? { stageLayers } : {}),
      });
    })
    .filter((p) => p !== undefined);
}

function legal(m: Model, o: Parameters<typeof definePlan>[1]): Plan | undefined {
  try {
    return definePlan(m, o);
  } catch (error) {
    if (error instanceof TriremeError) return undefined;
    throw error;
  }
}
