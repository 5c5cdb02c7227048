/** The order of products and collectives in the backward of a pair of products that ranks share out. */
import { type Work, communicatorArena, createCommunicator } from "@trireme/collectives";
import { expect, test } from "vitest";
import { createKernels } from "../src/kernels/kernels.ts";
import { linear } from "../src/operators/linear.ts";
import { enterTensorParallel } from "../src/operators/tensor-parallel.ts";
import { Pool } from "../src/memory/pool.ts";
import { createRankMemory } from "../src/memory/rank-memory.ts";
import type { LayerGroup } from "../src/layout/recorded-group.ts";
import { type Parameter, Tape } from "../src/tape/tape.ts";
import { type Tensor, view } from "../src/memory/tensor.ts";

type Halves = "together" | "apart";

/** What a backward does, in order, and the gradients that it leaves. */
function backward(sequence: boolean, overlaps: boolean, halves: Halves, drops = true) {
  const { memory, base } = createRankMemory();
  const pool = new Pool(memory, base);
  const kernels = createKernels(memory);
  const log: string[] = [];
  const logged: typeof kernels = {
    ...kernels,
    gemm: (...sizes) => {
      log.push(sizes[0] ? "weight product" : "input product");
      kernels.gemm(...sizes);
    },
  };
  const one = createCommunicator({
    memory: communicatorArena(1),
    rank: 0,
    ranks: 1,
    now: () => 0,
  });
  const told = (name: string, work: Work): Work => {
    log.push(name);
    return {
      get done() {
        return work.done;
      },
      wait: () => {
        log.push(`${name} over`);
        work.wait();
      },
    };
  };
  const group: LayerGroup = Object.assign(Object.create(one), {
    allReduce: (data: Float32Array) => told("sum", one.allReduce(data)),
    allGather: (a: Float32Array, b: Float32Array) => told("gather", one.allGather(a, b)),
    reduceScatter: (a: Float32Array, b: Float32Array) => told("sum", one.reduceScatter(a, b)),
  });
  const filled = (dims: number[], from: number): Tensor => {
    const tensor = pool.allocate(dims);
    view(memory, tensor).forEach((_, i, values) => (values[i] = Math.sin(from + i)));
    return tensor;
  };
  const tape = new Tape(logged, pool);
  const x = {
    value: filled([5, 7], 1),
    needsGradient: true,
    gradient: undefined as Tensor | undefined,
  };
  const sums = filled([7, 3], 40);
  const weight: Parameter = {
    name: "w",
    dims: [7, 3],
    value: filled([7, 3], 20),
    gradient: { pointer: sums.pointer, size: sums.size, each: 4 },
  };
  const { y: all, drop, behind } = enterTensorParallel(tape, x, { group, sequence, overlaps });
  const y = linear(tape, all, weight, { behind });
  if (drops) drop();
  y.gradient = filled([5, 3], 60);
  log.length = 0;
  if (halves === "together") tape.backward();
  else {
    tape.backwardInput();
    tape.backwardWeight();
  }
  return { log, gradients: [view(memory, x.gradient!).slice(), view(memory, sums).slice()] };
}

test("the sum of an input's gradient starts before the weight's product, and is waited for after it", () => {
  expect(backward(false, true, "together").log).toEqual([
    "input product",
    "sum",
    "weight product",
    "sum over",
  ]);
});

test("with sequence parallelism the input comes behind the product before, if it was dropped", () => {
  const sum = ["sum", "weight product", "sum over"];
  expect(backward(true, true, "together").log).toEqual([
    "gather",
    "input product",
    "gather over",
    ...sum,
  ]);
  expect(backward(true, true, "together", false).log).toEqual(["input product", ...sum]);
});

test("without overlap each is waited for on the spot", () => {
  expect(backward(false, false, "together").log).toEqual([
    "weight product",
    "input product",
    "sum",
    "sum over",
  ]);
  expect(backward(true, false, "together").log).toEqual([
    "gather",
    "gather over",
    "weight product",
    "input product",
    "sum",
    "sum over",
  ]);
});

test.each([true, false])(
  "gradients have the same bits in any order, sequence parallelism %s",
  (sequence) => {
    const { gradients } = backward(sequence, false, "together");
    for (const overlaps of [true, false]) {
      for (const halves of ["together", "apart"] as const) {
        expect(backward(sequence, overlaps, halves).gradients).toEqual(gradients);
      }
    }
  },
);
