/**
 * Stages that sleep as long as computing would take: schedule, messages and reductions are real. More
 * ranks than cores can so show what a schedule does to the time of a step.
 */
import type { Seconds } from "@trireme/core";
import type { StageCompute } from "./stage-compute.ts";

/** How long the actions of one microbatch in one stage take; B takes I and W together. */
export interface ActionSeconds {
  readonly F: Seconds;
  readonly I: Seconds;
  readonly W: Seconds;
}

/**
 * @param boundary Dims of what stages give each other.
 * @param sleep Default for real.
 */
export function rehearsedStages(
  { F, I, W }: ActionSeconds,
  boundary: readonly number[],
  sleep: (seconds: Seconds) => void = sleepNow,
): StageCompute {
  const seconds = { B: I + W, I, W };
  return {
    forward: ({ tape, training }) => {
      sleep(F);
      const output = tape.variable(boundary, training);
      tape.kernels.fill(output.value.pointer, 0, output.value.size);
      return { output, loss: 0 };
    },
    backward: ({ tape, input }, kind) => {
      sleep(seconds[kind]);
      if (kind === "W" || input === undefined) return;
      input.gradient = tape.allocate(input.value.dims);
      tape.kernels.fill(input.gradient.pointer, 0, input.gradient.size);
    },
  };
}

const never = new Int32Array(new SharedArrayBuffer(4));

function sleepNow(seconds: Seconds): void {
  Atomics.wait(never, 0, 0, seconds * 1e3);
}
