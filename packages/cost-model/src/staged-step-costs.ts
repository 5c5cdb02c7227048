/** The costs of a step whose pipelines differ, for those who play it. */
import type { Accelerator } from "@trireme/topology";
import { defineStagedMesh, hostOf } from "@trireme/topology";
import { stagedAxes } from "@trireme/workload";
import { type GradientSum, gradientSums } from "./gradient-sums.ts";
import { type Memory, gpuOverhead, hostOverhead } from "./memory.ts";
import { Prices } from "./prices.ts";
import { type StagedPipeline, stagedCosts } from "./staged-costs.ts";
import { stagedMemory } from "./staged-estimate.ts";
import type { StepOptions } from "./step-costs.ts";

/** What the parts of a step cost whose pipelines differ. */
export interface StagedStepCosts {
  readonly pipelines: readonly StagedPipeline[];
  readonly sums: readonly GradientSum[];
  /** Of every stage, pipeline by pipeline, and of the one with the least room; `device` is that one's. */
  readonly memory: Memory;
  readonly device: Accelerator;
}

/** Prices the pipelines of a plan that has them; throws TriremeError "PRECISION" like `rooflinePricer`. */
export function stagedStepCosts(o: StepOptions): StagedStepCosts {
  const prices = new Prices(o);
  const pipelines = stagedCosts(prices, o.plan);
  const mesh = defineStagedMesh(stagedAxes(o.model, o.plan));
  const gpu = hostOf(o.cluster, 0).accelerator.kind !== "cpu";
  return {
    pipelines,
    sums: gradientSums(prices, o.plan, mesh.pipelines),
    ...stagedMemory(prices, pipelines, gpu ? gpuOverhead : hostOverhead),
  };
}
