/**
 * LAMB (You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2): Adam's direction r
 * with decay moves each tensor x by learningRate · ‖x‖ / ‖r + decay·x‖. The two norms are of whole
 * tensors, whose parts may lie on ranks that share out the update or the layer. The ratio is 1 where a
 * norm is 0, and for biases and gains, which do not decay either: as in the authors' code. It has no
 * bounds.
 */
import type { Communicator } from "@trireme/collectives";
import type { Bucket } from "./bucket.ts";
import { gradientPart, readGradients } from "../memory/gradient-block.ts";
import type { AdamOptions } from "./optimizer.ts";

/** Of each parameter of a bucket in turn: squares of values, and of directions. */
export interface LambNorms {
  readonly bucket: Bucket;
  readonly squares: Float64Array<ArrayBuffer>;
}

/** Moves the moments of the rank's segments; returns the squares of what lies there. */
export function lambMoments(
  buckets: readonly Bucket[],
  options: AdamOptions,
  update: number,
  gradientScale: number,
): LambNorms[] {
  const { beta1, beta2, epsilon } = options;
  const corrections = [1 - beta1 ** update, 1 - beta2 ** update] as const;
  return buckets.map((bucket) => {
    const { parameters, place } = bucket;
    const { pool, kernels, segment } = place;
    const length = 2 * parameters.length;
    const sums = pool.scratch(length * 8);
    new Float64Array(pool.memory.buffer, sums, length).fill(0);
    parameters.forEach((parameter, i) => {
      const { start, count } = parameter.updated;
      if (count === 0) return;
      readGradients(place, gradientPart(segment.gradient, start, count), (gradients, at, some) => {
        const from = (start + at) * 4;
        kernels.lambMoments(
          segment.value.pointer + from,
          gradients,
          segment.firstMoment.pointer + from,
          segment.secondMoment.pointer + from,
          some,
          beta1,
          beta2,
          epsilon,
          parameter.spec.decays ? options.weightDecay : 0,
          ...corrections,
          gradientScale,
          sums + i * 16,
        );
      });
    });
    // The scratch is the next bucket's, too.
    const squares = new Float64Array(length);
    squares.set(new Float64Array(pool.memory.buffer, sums, length));
    return { bucket, squares };
  });
}

/**
 * Adds up the squares of all parts of each tensor, in the order of the ranks, so that all of them
 * move by the same ratio.
 */
export function sumNorms(norms: readonly LambNorms[]): void {
  // A rank may hold buckets whose other parts are with ranks that come to them in another order: each
  // sum begins before any is waited for.
  const finish = (parts: readonly ((() => void) | undefined)[]): void => {
    for (const end of parts) end?.();
  };
  finish(norms.map(({ bucket, squares }) => gathered(bucket.segmentGroup, squares)));
  finish(
    norms.map(({ bucket: { sliceGroup, parameters }, squares }) => {
      // What each of these ranks holds whole counts once.
      if (sliceGroup !== undefined && sliceGroup.rank > 0) {
        parameters.forEach(({ spec }, i) => {
          if (spec.slice === undefined) squares.fill(0, 2 * i, 2 * i + 2);
        });
      }
      return gathered(sliceGroup, squares);
    }),
  );
}

/** Starts to sum `squares` over a group; what is returned ends it. */
function gathered(
  group: Communicator | undefined,
  squares: Float64Array<ArrayBuffer>,
): (() => void) | undefined {
  if (group === undefined || group.ranks === 1) return undefined;
  const all = new Float64Array(squares.length * group.ranks);
  // The communicator carries 32-bit numbers: a double travels as two of them.
  const work = group.allGather(new Int32Array(squares.buffer), new Int32Array(all.buffer));
  return () => {
    work.wait();
    squares.fill(0);
    all.forEach((square, i) => (squares[i % squares.length]! += square));
  };
}

/** Moves the rank's segments. */
export function lambUpdate(
  norms: readonly LambNorms[],
  options: AdamOptions,
  update: number,
  learningRate: number,
): void {
  const { beta1, beta2, epsilon, weightDecay } = options;
  const corrections = [1 - beta1 ** update, 1 - beta2 ** update] as const;
  for (const { bucket, squares } of norms) {
    const { kernels, segment } = bucket.place;
    const { value, firstMoment, secondMoment } = segment;
    bucket.parameters.forEach((parameter, i) => {
      const { start: from, count } = parameter.updated;
      if (count === 0) return;
      const { decays } = parameter.spec;
      const ratio = decays ? trustRatio(squares[2 * i]!, squares[2 * i + 1]!) : 1;
      kernels.lambUpdate(
        value.pointer + from * 4,
        firstMoment.pointer + from * 4,
        secondMoment.pointer + from * 4,
        count,
        learningRate * ratio,
        epsilon,
        decays ? weightDecay : 0,
        ...corrections,
      );
    });
  }
}

/** ‖x‖ / ‖r‖ of their squares. */
function trustRatio(value: number, direction: number): number {
  return value > 0 && direction > 0 ? Math.sqrt(value / direction) : 1;
}
