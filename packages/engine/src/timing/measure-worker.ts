/** A thread that times operators one after another, while others do the same on other cores. */
import { parentPort, workerData } from "node:worker_threads";
import { median } from "@trireme/core";
import type { Operator } from "@trireme/workload";
import type { Segment } from "../weights/bucket.ts";
import { HostMemory, HostPlace } from "../weights/host-place.ts";
import { withBackend } from "../kernels/gemm-backend.ts";
import { type Kernels, createKernels } from "../kernels/kernels.ts";
import type { Measured, MeasureSeed } from "./measure-protocol.ts";
import { gradientOperator, timedOperator } from "./operator-case.ts";
import { Pool } from "../memory/pool.ts";
import { createRankMemory } from "../memory/rank-memory.ts";
import { restOf } from "../memory/resting-tensor.ts";
import { Tape } from "../tape/tape.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import { timedRuns } from "./timed-runs.ts";

const now = (): number => performance.now() / 1e3;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread sends nothing else
const seed = workerData as MeasureSeed;
const { memory, base } = createRankMemory();
const pool = new Pool(memory, base);
const kernelsOf = (of: WebAssembly.Memory): Kernels =>
  withBackend(createKernels(of), of, seed.kernels);
const kernels = kernelsOf(memory);
// Losses and the products that nothing quantises say what activations and matrices of the plan are kept in.
const narrow = seed.operators.some(({ form }) => form.startsWith("bf16"));

/** Waits until every thread has come this far: they are to disturb one another as ranks do. */
function meet(): void {
  const { gate, threads } = seed;
  if (Atomics.add(gate, 0, 1) + 1 === threads) {
    Atomics.store(gate, 1, 1);
    Atomics.notify(gate, 1);
  }
  // A thread that never starts must not keep the others for ever.
  Atomics.wait(gate, 1, 0, 10_000);
}

/** More than the caches of a core hold, but for the one that all cores share. */
const coldElements = 2 ** 20;
const cold = pool.allocate([coldElements]);

/**
 * Brings the caches into the state of a training step: what was written last is in them, and what
 * lies longer ago (weights, saved activations, another rank's turn) is not.
 */
function cool(warm: Tensor): void {
  kernels.fill(cold.pointer, 0, coldElements);
  kernels.sumSquares(warm.pointer, warm.size);
}

/** Times a forward operator and its gradients; at most `budget` seconds. */
function timeForward(operator: Operator, budget: number): Measured {
  const timed = timedOperator(operator, { pool, kernels, narrow });
  const times: [number[], number[], number[]] = [[], [], []];
  for (const counts of timedRuns(budget, now)) {
    const tape = new Tape(kernels, pool, true, timed.products);
    cool(timed.input);
    const begin = now();
    const y = timed.run(tape);
    tape.rest();
    const forward = now();
    restOf(timed.input);
    if (y.gradient === undefined) {
      y.gradient = tape.activation(y.value.dims);
      view(memory, y.gradient).fill(1e-3);
    }
    cool(y.gradient);
    const back = now();
    tape.backwardInput();
    const weight = now();
    tape.backwardWeight();
    const done = now();
    tape.release();
    if (!counts) continue;
    times[0].push(forward - begin);
    times[1].push(weight - back);
    times[2].push(done - weight);
  }
  timed.free();
  const seconds = times.map(median);
  const keys = [
    operator,
    gradientOperator(seed.operators, operator, "input-gradient"),
    gradientOperator(seed.operators, operator, "weight-gradient"),
  ];
  return keys.flatMap((o, i) => (o === undefined ? [] : [[o.key, seconds[i]!] as const]));
}

function timeOptimizer(operator: Operator, budget: number): Measured {
  const n = operator.shape[0]!;
  const tensor = (): Tensor => {
    const allocated = pool.allocate([n]);
    view(memory, allocated).fill(1e-3);
    return allocated;
  };
  const half = narrow ? pool.allocateBytes(n * 2) : undefined;
  const tensors = [tensor(), tensor(), tensor(), tensor()] as const;
  const [value, { pointer }, first, second] = tensors;
  const gradient = { pointer, size: n, each: 4 } as const;
  const host =
    operator.form === "adamw-host"
      ? new HostPlace(new HostMemory(kernelsOf), memory, { start: 0, value })
      : undefined;
  const times: number[] = [];
  for (const counts of timedRuns(budget, now)) {
    const begin = now();
    // What the update of a step consists of: clear, norm, AdamW; on the host, between copies.
    kernels.fill(gradient.pointer, 1e-3, n);
    kernels.sumSquares(gradient.pointer, n);
    if (host === undefined) {
      update(kernels, { value, gradient, firstMoment: first, secondMoment: second });
    } else {
      host.takeGradients(gradient);
      update(host.kernels, host.segment);
      host.giveValues(value);
    }
    if (half !== undefined) kernels.toBf16(value.pointer, half, n);
    if (counts) times.push(now() - begin);
  }
  for (const used of tensors) pool.free(used);
  if (half !== undefined) pool.freeBytes(half, n * 2);
  return [[operator.key, median(times)]];
}

function update(of: Kernels, segment: Omit<Segment, "start" | "count">): void {
  const { value, gradient, firstMoment, secondMoment } = segment;
  const pointers = [value, gradient, firstMoment, secondMoment].map(({ pointer }) => pointer);
  const [p = 0, g = 0, m = 0, v = 0] = pointers;
  of.adamw(p, g, m, v, value.size, 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.1, 1);
}

// A cast is timed with the product that reads it.
const [casts, others] = [true, false].map((is) =>
  seed.operators.filter(({ form }) => form.startsWith("cast-") === is),
);
const cases = others!.filter(({ pass }) => pass === "forward" || pass === "update");
const share = seed.budget / cases.length;
meet();
const measured = cases.flatMap((operator) =>
  operator.pass === "update" ? timeOptimizer(operator, share) : timeForward(operator, share),
);
parentPort!.postMessage([...measured, ...casts!.map(({ key }) => [key, 0] as const)]);
