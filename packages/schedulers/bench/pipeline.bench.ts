import {
  type Schedule,
  automaticZeroBubble,
  dualPipe,
  interleaved,
  lower,
  replay,
  validate,
} from "@trireme/schedulers";

const costs = { forward: 1, inputGradient: 1, weightGradient: 1, pointToPoint: 0.1 };

/** Generate, validate, lower, replay: what a planner does with one candidate. */
function allFour(generate: () => Schedule): void {
  const s = generate();
  const result = validate(s);
  if (!result.ok) throw new Error(result.violations[0]?.message);
  replay(lower(s), costs);
}

const large = (): Schedule => interleaved({ ranks: 64, chunks: 4, microbatches: 512 });
let compute: Schedule | undefined;
let lowered: Schedule | undefined;

export const benchmarks = [
  {
    id: "schedulers/interleaved-all-four",
    what: "seconds to generate, validate, lower and replay interleaved 1F1B at P 64, V 4, M 512 (262,144 compute actions, 784,384 with sends and receives)",
    unit: "s",
    better: "lower",
    target: 0.6,
    time: (): void => allFour(large),
    peer: {
      name: "a Python pipeline visualiser (V 2, without lowering)",
      value: 3.89,
      source: "run on two cores: P 64, V 2, M 512, half the stages and no sends or receives",
    },
  },
  {
    id: "schedulers/dualpipe-all-four",
    what: "seconds to generate, validate, lower and replay DualPipe at P 16, M 4096",
    unit: "s",
    better: "lower",
    target: 0.5,
    time: (): void => allFour(() => dualPipe({ ranks: 16, microbatches: 4096 })),
  },
  {
    id: "schedulers/replay-compute",
    what: "compute actions of interleaved 1F1B at P 64, V 4, M 512 replayed in a second",
    unit: "actions/s",
    better: "higher",
    target: 4e6,
    amount: 262_144,
    before: (): void => {
      compute = large();
    },
    time: (): void => {
      if (compute !== undefined) replay(compute, costs);
    },
  },
  {
    id: "schedulers/replay-lowered",
    what: "actions of the same schedule with sends and receives replayed in a second",
    unit: "actions/s",
    better: "higher",
    target: 4e6,
    amount: 784_384,
    before: (): void => {
      lowered = lower(large());
    },
    time: (): void => {
      if (lowered !== undefined) replay(lowered, costs);
    },
  },
  {
    id: "schedulers/automatic-gap",
    what: "gap of the automatic zero-bubble search to its lower bound at P 8, M 32, costs 1, 1.1, 0.8, transfers 0.05, 1F1B's memory",
    unit: "fraction",
    better: "lower",
    target: 0.02,
    measure: (): number | undefined => {
      const found = automaticZeroBubble({
        ranks: 8,
        microbatches: 32,
        costs: { forward: 1, inputGradient: 1.1, weightGradient: 0.8, pointToPoint: 0.05 },
        memoryLimit: 8,
      });
      return found.ok ? found.gap : undefined;
    },
  },
] as const;
