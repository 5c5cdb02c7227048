import { readFile } from "node:fs/promises";
import {
  type CanonicalPartition,
  type CanonicalPartitionOptions,
  type ShardShuffle,
  canonicalPartition,
  shuffleShards,
} from "@trireme/dataloader";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

type Vector = CanonicalPartitionOptions & { readonly steps: readonly (readonly number[][][])[] };
const vectors: readonly Vector[] = JSON.parse(
  await readFile(new URL("vectors/streaming-partition.json", import.meta.url), "utf8"),
);

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** [step][node][rank][place] */
function table(
  partition: CanonicalPartition,
  { nodes, ranksPerNode, batch }: CanonicalPartitionOptions,
): number[][][][] {
  return numbers(partition.steps).map((step) =>
    numbers(nodes).map((node) =>
      numbers(ranksPerNode).map((rank) =>
        numbers(batch).map((place) => partition.sample(step, node, rank, place)),
      ),
    ),
  );
}

const steps = (options: CanonicalPartitionOptions): number[][] =>
  table(canonicalPartition(options), options).map((step) => step.flat(2));
const sorted = (samples: readonly number[]): number[] => [...samples].sort((a, b) => a - b);

describe("a partition over canonical nodes", () => {
  const base = { samples: 24, canonicalNodes: 2 };

  it("is that of 24 samples over two canonical nodes, whoever reads it", () => {
    const one = steps({ ...base, nodes: 1, ranksPerNode: 1, batch: 8 });
    expect(one[0]).toEqual([0, 12, 1, 13, 2, 14, 3, 15]);
    const four = steps({ ...base, nodes: 2, ranksPerNode: 2, batch: 2 });
    expect(four).toEqual([
      [0, 2, 1, 3, 12, 14, 13, 15],
      [4, 6, 5, 7, 16, 18, 17, 19],
      [8, 10, 9, 11, 20, 22, 21, 23],
    ]);
    expect(four.map(sorted)).toEqual(one.map(sorted));
    // Eight samples were seen: it starts at the second batch.
    expect(steps({ ...base, nodes: 2, ranksPerNode: 2, batch: 2, skip: 8 })).toEqual(four.slice(1));
  });

  it("of ten samples over four ranks repeats samples 3 and 8, and pads with -1", () => {
    const options = { samples: 10, canonicalNodes: 2, nodes: 2, ranksPerNode: 2, batch: 2 };
    expect(steps(options)).toEqual([
      [0, 2, 1, 3, 5, 7, 6, 8],
      [4, -1, 3, -1, 9, -1, 8, -1],
    ]);
  });

  it("is the original's, at random sizes", () => {
    expect(vectors.length).toBeGreaterThan(50);
    for (const { steps: expected, ...options } of vectors) {
      expect({ options, steps: table(canonicalPartition(options), options) }).toEqual({
        options,
        steps: expected,
      });
    }
  });

  it("of 15 canonical nodes is resumed on any number of nodes that divides the batch of 960", () => {
    const at = (nodes: number, initialNodes?: number): number[][] =>
      steps({
        samples: 10_000,
        canonicalNodes: 15,
        nodes,
        ranksPerNode: 8,
        workersPerRank: 8,
        batch: 960 / (8 * nodes),
        ...(initialNodes === undefined ? {} : { initialNodes }),
      });
    const first = at(15);
    const whole = first.findIndex((step) => step.includes(-1));
    const sets = (all: number[][]): string => all.slice(0, whole).map(sorted).join("\n");
    for (const nodes of [1, 3, 5, 30, 60, 120]) {
      expect(sets(at(nodes, 15))).toBe(sets(first));
      expect(at(nodes).join()).toBe(at(nodes, 15).join());
    }
    for (const nodes of [2, 4, 6, 8, 10, 12, 20, 24, 40]) {
      expect(() => at(nodes)).toThrow(`nodes(${nodes}) and canonicalNodes(15) do not divide`);
      expect(at(nodes, 15).join()).toBe(first.join());
    }
  });

  it("drops and repeats nothing where the sizes divide, and never reads beyond the data", () => {
    const size = fc.integer({ min: 1, max: 6 });
    fc.assert(
      fc.property(
        fc.record({ a: size, b: size, wide: fc.boolean(), r: size, w: size, batch: size, k: size }),
        fc.integer({ min: 0, max: 30 }),
        ({ a, b, wide, r, w, batch, k }, less) => {
          const [canonicalNodes, nodes] = wide ? [a * b, a] : [a, a * b];
          const options = { canonicalNodes, nodes, ranksPerNode: r, workersPerRank: w, batch };
          const samples = a * b * r * w * batch * k;
          expect(sorted(steps({ ...options, samples }).flat())).toEqual(numbers(samples));
          const fewer = Math.max(1, samples - less);
          const read = new Set(steps({ ...options, samples: fewer }).flat());
          read.delete(-1);
          expect(sorted([...read])).toEqual(numbers(fewer));
        },
      ),
      { numRuns: 100 },
    );
  });

  it("finds a place among 2^40 samples at once, and says what is wrong with its numbers", () => {
    const many = { samples: 2 ** 40, canonicalNodes: 128, ranksPerNode: 8, batch: 4 };
    const partition = canonicalPartition({ ...many, nodes: 64, workersPerRank: 2 });
    expect(partition.steps).toBe(2 ** 40 / (64 * 8 * 4));
    // The node's sample 8 · (4 · 2²⁸ + 3) + 7 is at place 64 · that + 63: canonical node 127, column 2³² + 15.
    expect(partition.sample(2 ** 28, 63, 7, 3)).toBe(127 * 2 ** 33 + 2 ** 32 + 15);
    expect(partition.worker(7)).toBe(1);
    const given = { ...many, nodes: 64 };
    const made = (o: object) => () => canonicalPartition({ ...given, ...o });
    expect(made({ batch: 0 })).toThrow("batch 0 is not a positive integer");
    expect(made({ skip: -1 })).toThrow("skip -1 is not a count of samples");
    expect(made({ samples: 10, skip: 2000 })).toThrow("skip 2000 is beyond the 10 samples");
    expect(made({ nodes: 3, initialNodes: 64 })).toThrow(
      "global batch 96 = nodes(3) x ranksPerNode(8) x batch(4) is not a multiple of the 512 ranks",
    );
  });
});

describe("a shuffle of shards", () => {
  const shardSizes = numbers(100).map((shard) => 1 + shard);
  const samples = 5050;
  const shuffled = (method: ShardShuffle, epoch: number, canonicalNodes = 1, seed = 0) =>
    Array.from(shuffleShards({ shardSizes, canonicalNodes, method, seed, epoch, block: 300 }));
  const byShard = ["py1s", "py1br", "py1e", "py2s"] as const;

  it("is a permutation, another in every epoch and the same for a seed", () => {
    expect(shuffled("none", 3)).toEqual(numbers(samples));
    for (const method of ["naive", ...byShard] as const) {
      const first = shuffled(method, 0);
      expect(sorted(first)).toEqual(numbers(samples));
      expect(shuffled(method, 0)).toEqual(first);
      for (const other of [shuffled(method, 1), shuffled(method, 2), shuffled(method, 0, 1, 7)]) {
        expect(sorted(other)).toEqual(numbers(samples));
        // Fewer places agree than one in ten.
        expect(other.filter((sample, i) => sample === first[i]).length).toBeLessThan(505);
      }
    }
  });

  it.each(byShard)("by %s leaves every canonical node its samples in every epoch", (method) => {
    for (const nodes of [1, 2, 3]) {
      for (const seed of [0, 1]) {
        const part = (epoch: number, node: number): number[] => {
          const border = (n: number): number => Math.floor((samples * n) / nodes);
          return sorted(shuffled(method, epoch, nodes, seed).slice(border(node), border(node + 1)));
        };
        for (const node of numbers(nodes)) expect(part(1, node).join()).toBe(part(0, node).join());
      }
    }
  });

  it("mixes shards within a block: only of py1br and py1e, and not beyond it", () => {
    const shardOf = shardSizes.flatMap((size, shard) => new Array<number>(size).fill(shard));
    const width = (method: ShardShuffle): number => {
      const ends = new Map<number, [number, number]>();
      for (const [i, sample] of shuffled(method, 0).entries()) {
        const [low] = ends.get(shardOf[sample]!) ?? [i];
        ends.set(shardOf[sample]!, [low, i]);
      }
      return Math.max(
        ...[...ends].map(([shard, [low, high]]) => high - low + 1 - shardSizes[shard]!),
      );
    };
    for (const method of ["py1s", "py2s"] as const) expect(width(method)).toBe(0);
    for (const method of ["py1br", "py1e"] as const) {
      expect(width(method)).toBeGreaterThan(100);
      // Two blocks of at most 1.25 · 300 meet in a shard at most; neighbours move by as much.
      expect(width(method)).toBeLessThan(3 * 375);
    }
  });

  it("takes shards of no samples and fewer samples than nodes, and refuses what is no count", () => {
    const options = { seed: 1, epoch: 0, method: "py1e" } as const;
    expect(shuffleShards({ ...options, shardSizes: [], canonicalNodes: 2 })).toHaveLength(0);
    const few = shuffleShards({ ...options, shardSizes: [0, 2, 0], canonicalNodes: 5 });
    expect(sorted(Array.from(few))).toEqual([0, 1]);
    const bad = (o: object) => () =>
      shuffleShards({ ...options, shardSizes: [1], canonicalNodes: 1, ...o });
    expect(bad({ shardSizes: [-1] })).toThrow("shard 0 has -1 samples");
    expect(bad({ canonicalNodes: 0 })).toThrow("canonicalNodes 0 is not a positive integer");
    expect(bad({ epoch: 0.5 })).toThrow("epoch 0.5 is not a count");
  });
});

it("names a node, rank or place that there is not, instead of giving it another's sample", () => {
  const o = { samples: 10, canonicalNodes: 2, nodes: 2, ranksPerNode: 2, batch: 2 };
  for (const initialNodes of [undefined, 4]) {
    const p = canonicalPartition({ ...o, ...(initialNodes === undefined ? {} : { initialNodes }) });
    expect(() => p.sample(0, 2, 0, 0)).toThrow("node 2 is outside 0..1");
    expect(() => p.sample(0, 0, -1, 0)).toThrow("rank -1 is outside 0..1");
    expect(() => p.sample(0, 0, 0, 0.5)).toThrow("place 0.5 is outside 0..1");
    expect(() => p.sample(NaN, 0, 0, 0)).toThrow("step NaN");
  }
});
