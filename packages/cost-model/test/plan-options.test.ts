import { expect, test } from "vitest";
import { defineCluster } from "@trireme/topology";
import { type Model, type Plan, definePlan, model, ranks } from "@trireme/workload";
import { type Cost, estimate } from "@trireme/cost-model";

const llama = model("llama3-8b");

/** Each option flipped on a case where it matters: [what is flipped, base, change, expected]. */
const flips: readonly (readonly [
  string,
  Partial<Plan>,
  Partial<Plan>,
  (a: Cost, b: Cost) => boolean,
])[] = [
  [
    "sequence parallelism saves activations",
    { tp: 8 },
    { sequenceParallel: true },
    (a, b) => b.memory.activations < a.memory.activations,
  ],
  [
    "scatter/gather makes boundaries cheaper",
    { tp: 8, pp: 4 },
    { scatterGather: true },
    (a, b) => b.breakdown.pointToPoint < a.breakdown.pointToPoint,
  ],
  [
    "full recomputation trades time for memory",
    {},
    { recompute: "full" },
    (a, b) =>
      b.breakdown.compute > 1.2 * a.breakdown.compute &&
      b.memory.activations < a.memory.activations,
  ],
  [
    "selective recomputation trades time for memory",
    { flashAttention: false },
    { recompute: "selective" },
    (a, b) =>
      b.breakdown.compute > a.breakdown.compute && b.memory.activations < a.memory.activations,
  ],
  [
    "fp32 is slower and larger",
    {},
    { precision: "fp32" },
    (a, b) => b.step > 2 * a.step && b.memory.weights === 2 * a.memory.weights,
  ],
  [
    "attention in 8 bits is faster and keeps half of its operands",
    {},
    { attentionPrecision: "fp8" },
    (a, b) =>
      b.breakdown.compute < a.breakdown.compute &&
      b.memory.activations < 0.95 * a.memory.activations,
  ],
  [
    "attention within documents is a smaller part, and keeps as much",
    {},
    { document: 512 },
    (a, b) =>
      b.breakdown.compute < 0.92 * a.breakdown.compute &&
      b.memory.activations === a.memory.activations,
  ],
  [
    "the activation's input in 8 bits is smaller and takes no time",
    {},
    { activationPrecision: "fp8" },
    (a, b) => b.step === a.step && b.memory.activations < 0.8 * a.memory.activations,
  ],
  [
    "16-bit gradients halve their reduction",
    { dp: 16 },
    { gradientPrecision: "bf16" },
    (a, b) => b.breakdown.dataParallel < 0.6 * a.breakdown.dataParallel,
  ],
  [
    "reducing 16-bit gradients in 32 bits doubles their traffic and not their memory",
    { dp: 16, gradientPrecision: "bf16" },
    { reductionPrecision: "fp32" },
    (a, b) =>
      b.breakdown.dataParallel > 1.8 * a.breakdown.dataParallel &&
      b.memory.total === a.memory.total,
  ],
  [
    "ZeRO 1 that sums all gradients everywhere moves half as much again",
    { dp: 16, zero: 1, gradientPrecision: "bf16" },
    { gradientExchange: "all-reduce" },
    (a, b) => {
      const more = b.breakdown.dataParallel / a.breakdown.dataParallel;
      return more > 1.3 && more < 1.6;
    },
  ],
  [
    "ZeRO 1 shares the optimizer",
    { dp: 16 },
    { zero: 1 },
    (a, b) =>
      b.memory.optimizer < a.memory.optimizer && b.breakdown.optimizer < a.breakdown.optimizer,
  ],
  [
    "ZeRO 3 shares the weights and communicates more",
    { dp: 16, zero: 2 },
    { zero: 3 },
    (a, b) =>
      b.memory.weights < a.memory.weights && b.breakdown.dataParallel > a.breakdown.dataParallel,
  ],
  [
    "plain attention is slower and larger",
    {},
    { flashAttention: false },
    (a, b) => b.step > a.step && b.memory.activations > a.memory.activations,
  ],
  [
    "dropout costs time and masks",
    {},
    { dropout: 0.1 },
    (a, b) => b.step > a.step && b.memory.activations > a.memory.activations,
  ],
  [
    "overlap hides gradients",
    { dp: 16 },
    { overlapDataParallel: true },
    (a, b) => b.breakdown.dataParallel < a.breakdown.dataParallel,
  ],
  [
    "overlap hides tensor parallelism",
    { tp: 8, sequenceParallel: true },
    { overlapTensorParallel: true },
    (a, b) => b.breakdown.tensorParallel < a.breakdown.tensorParallel,
  ],
  [
    "overlap hides sends",
    { pp: 4 },
    { overlapPointToPoint: true },
    (a, b) => b.breakdown.pointToPoint < a.breakdown.pointToPoint,
  ],
  [
    "interleaving shrinks the bubble",
    { pp: 4 },
    { vpp: 2, schedule: "interleaved" },
    (a, b) => b.breakdown.bubble < a.breakdown.bubble,
  ],
  [
    "GPipe keeps every microbatch",
    { pp: 4, globalBatch: 64 },
    { schedule: "gpipe" },
    (a, b) => b.memory.activations > a.memory.activations,
  ],
  [
    "larger microbatches make a larger bubble",
    { pp: 4 },
    { microbatch: 4 },
    (a, b) => b.breakdown.bubble > a.breakdown.bubble,
  ],
  [
    "a longer sequence costs more per token",
    {},
    { sequence: 32_768 },
    (a, b) => b.tokensPerSecond < a.tokensPerSecond,
  ],
  [
    "an uneven layout waits for its longest stage",
    { pp: 4 },
    { stageLayers: [5, 5, 5, 17] },
    (a, b) => b.step > 1.5 * a.step,
  ],
  [
    "an embedding that counts as a layer leaves its stage less to hold, and another more",
    { pp: 4 },
    { accountForEmbedding: true },
    (a, b) =>
      b.memory.ranks[0]!.total < a.memory.ranks[0]!.total &&
      b.memory.ranks[1]!.total > a.memory.ranks[1]!.total,
  ],
  [
    "a head that counts as a layer shortens the longest stage",
    { pp: 4, globalBatch: 256 },
    { accountForLoss: true },
    (a, b) => b.step < a.step && b.memory.ranks[3]!.weights < a.memory.ranks[3]!.weights,
  ],
  ["more replicas share the work", { globalBatch: 64 }, { dp: 4 }, (a, b) => b.step < 0.4 * a.step],
  [
    "context parallelism splits activations and talks",
    {},
    { cp: 4 },
    (a, b) => b.memory.activations < 0.3 * a.memory.activations && b.breakdown.tensorParallel > 0,
  ],
  [
    "quantised products are faster and keep less",
    {},
    { matrixPrecision: "fp8" },
    (a, b) =>
      b.breakdown.compute < a.breakdown.compute && b.memory.activations < a.memory.activations,
  ],
  [
    "products of 8-bit integers are faster and keep less",
    {},
    { matrixPrecision: "int8" },
    (a, b) =>
      b.breakdown.compute < a.breakdown.compute && b.memory.activations < a.memory.activations,
  ],
  ["older attention kernels are slower", {}, { flashVersion: 1 }, (a, b) => b.step > a.step],
  [
    "norms from elementary operations are slower and larger",
    {},
    { fusedNorm: false },
    (a, b) => b.step > a.step && b.memory.activations > a.memory.activations,
  ],
  [
    "elementwise work from elementary operations is slower and larger",
    {},
    { fusedElementwise: false },
    (a, b) => b.step > a.step && b.memory.workspace > a.memory.workspace,
  ],
  [
    "softmax from elementary operations is slower",
    { flashAttention: false },
    { fusedSoftmax: false },
    (a, b) => b.step > a.step,
  ],
  [
    "gathered logits cost time and memory",
    { tp: 8 },
    { vocabParallelLoss: false },
    (a, b) => b.step > a.step && b.memory.workspace > a.memory.workspace,
  ],
  [
    "blocking collectives in backward are exposed",
    { tp: 8 },
    { overlapGradientProducts: false },
    (a, b) => b.breakdown.tensorParallel > a.breakdown.tensorParallel,
  ],
  [
    "tensor parallelism splits weights and talks",
    {},
    { tp: 4 },
    (a, b) =>
      b.memory.weights < 0.3 * a.memory.weights &&
      a.breakdown.tensorParallel === 0 &&
      b.breakdown.tensorParallel > 0,
  ],
  [
    "pipeline parallelism splits weights, sends and waits",
    {},
    { pp: 4 },
    (a, b) =>
      b.memory.weights < 0.5 * a.memory.weights &&
      b.breakdown.pointToPoint > 0 &&
      b.breakdown.bubble > a.breakdown.bubble,
  ],
  [
    "a larger batch takes longer and wastes less of a pipeline",
    { pp: 4 },
    { globalBatch: 64 },
    (a, b) => b.step > 3 * a.step && b.breakdown.bubble / b.step < a.breakdown.bubble / a.step,
  ],
  [
    "recomputation by operator is between none and full",
    { recompute: "operators" },
    { recompute: "full" },
    (a, b) =>
      b.breakdown.compute > a.breakdown.compute && b.memory.activations < a.memory.activations,
  ],
];

const mixtral = model("mixtral-8x7b");

/** The same on a model with experts: two hosts, tensor parallelism or data parallelism alone. */
const expertFlips: typeof flips = [
  [
    "expert parallelism shares out experts and exchanges tokens",
    { dp: 16 },
    { ep: 8 },
    (a, b) =>
      b.memory.weights < 0.3 * a.memory.weights &&
      b.breakdown.tensorParallel > a.breakdown.tensorParallel,
  ],
  [
    "splitting experts shares their weights and exchanges more",
    { dp: 16, ep: 8 },
    { etp: 2 },
    (a, b) =>
      b.memory.weights < a.memory.weights &&
      b.breakdown.tensorParallel > a.breakdown.tensorParallel,
  ],
  [
    "gathering all tokens moves more than two experts' exchange on eight ranks",
    { dp: 16, ep: 8 },
    { dispatch: "all-gather" },
    (a, b) => b.breakdown.tensorParallel > a.breakdown.tensorParallel,
  ],
  [
    "a capacity below one drops work, and its time",
    { dp: 16, ep: 8 },
    { expertCapacity: 0.5 },
    (a, b) => b.breakdown.compute < 0.8 * a.breakdown.compute,
  ],
  [
    "a second microbatch hides the exchange",
    { dp: 16, ep: 8 },
    { overlapExpertParallel: true },
    (a, b) => b.breakdown.tensorParallel < 0.5 * a.breakdown.tensorParallel,
  ],
  [
    "recomputing experts costs their forward and exchange again, and keeps attention's activations alone",
    { dp: 16, ep: 8 },
    { recompute: "experts" },
    (a, b) =>
      b.breakdown.compute > 1.1 * a.breakdown.compute &&
      b.breakdown.compute < 1.3 * a.breakdown.compute &&
      b.breakdown.tensorParallel > 1.4 * a.breakdown.tensorParallel &&
      b.memory.activations < 0.4 * a.memory.activations,
  ],
  [
    "rematerialisation trades little time for much memory",
    { dp: 16, ep: 8 },
    { recompute: "rematerialise" },
    (a, b) =>
      b.memory.activations < 0.75 * a.memory.activations &&
      b.breakdown.compute > a.breakdown.compute &&
      b.breakdown.compute < 1.1 * a.breakdown.compute,
  ],
];

const briefly = { dp: 16, ep: 2, sequence: 128 } as const;

/** Where launching sets the pace. */
const launchFlips: typeof flips = [
  [
    "one kernel for all experts saves launches",
    briefly,
    { groupedKernel: true },
    (a, b) => b.breakdown.compute < a.breakdown.compute,
  ],
  [
    "a capacity spares the host the reading of counts",
    { dp: 16, ep: 8, sequence: 16_384 },
    { expertCapacity: 1 },
    (a, b) => b.breakdown.compute < a.breakdown.compute,
  ],
  [
    "graphs of routers save launches, graphs of all save more",
    { ...briefly, cudaGraphs: "routing" },
    { cudaGraphs: "all" },
    (a, b) => b.breakdown.compute < a.breakdown.compute,
  ],
  [
    "a token that travels once to a rank moves less",
    { dp: 16, ep: 2 },
    { dispatch: "unique" },
    (a, b) => b.breakdown.tensorParallel < a.breakdown.tensorParallel,
  ],
  [
    "rows that travel to experts in 8 bits move less",
    { dp: 16, ep: 2 },
    { dispatchPrecision: "fp8" },
    (a, b) => b.breakdown.tensorParallel < 0.7 * a.breakdown.tensorParallel,
  ],
];

const others: typeof flips = [
  [
    "a vocabulary split over the stages takes its work and its memory off the last",
    { pp: 8, microbatch: 1, globalBatch: 64 },
    { vocabulary: "two-barriers" },
    (a, b) =>
      b.step < a.step &&
      b.memory.ranks[7]!.weights < a.memory.ranks[7]!.weights &&
      b.memory.ranks[3]!.activations > a.memory.ranks[3]!.activations,
  ],
  [
    "one barrier holds a microbatch less than two",
    { pp: 8, globalBatch: 64, vocabulary: "two-barriers" },
    { vocabulary: "one-barrier" },
    (a, b) => b.memory.activations < a.memory.activations,
  ],
  [
    "an interlaced pipeline holds more and has its probabilities right at once",
    { pp: 8, globalBatch: 64, vocabulary: "one-barrier" },
    { vocabulary: "interlaced" },
    (a, b) =>
      b.memory.activations > a.memory.activations && b.breakdown.compute < a.breakdown.compute,
  ],
  [
    "a loss of elementary operations in place moves more and holds no more",
    {},
    { fusedLoss: false },
    (a, b) => b.breakdown.compute > a.breakdown.compute && b.memory.total === a.memory.total,
  ],
  [
    "gathered weights that are copied into parameters are read and written twice a microbatch",
    { dp: 8, zero: 3 },
    { gatheredCopies: true },
    (a, b) => {
      // 4 bytes for each of 8.03 billion parameters, forward and backward, for two microbatches a replica.
      const streamed = (2 * 2 * 4 * 8.03e9) / (3.35e12 * 0.82);
      const more = b.breakdown.compute - a.breakdown.compute;
      return Math.abs(more / streamed - 1) < 0.1;
    },
  ],
  [
    "moments in 16 bits take 4 of 12 bytes a parameter less, and less time",
    { zero: 1 },
    { momentPrecision: "bf16" },
    (a, b) =>
      b.breakdown.optimizer < a.breakdown.optimizer &&
      Math.abs(b.memory.optimizer / a.memory.optimizer - 8 / 12) < 1e-9,
  ],
  [
    "rotary embedding of elementary operations moves more and holds no more",
    {},
    { fusedRotary: false },
    (a, b) => b.breakdown.compute > a.breakdown.compute && b.memory.total === a.memory.total,
  ],
  [
    "recomputing some layers lies between none and all",
    { recompute: "full" },
    { recomputeLayers: 8 },
    (a, b) =>
      b.breakdown.compute < a.breakdown.compute && b.memory.activations > a.memory.activations,
  ],
  [
    "an optimizer on the host frees the device and takes longer",
    {},
    { offload: "optimizer" },
    (a, b) =>
      a.memory.optimizer > 0 &&
      b.memory.optimizer === 0 &&
      b.breakdown.optimizer > a.breakdown.optimizer,
  ],
  [
    "data parallelism between neighbours puts tensor parallelism on the network",
    { tp: 8, dp: 8 },
    { order: ["dp", "cp", "tp", "pp"] },
    (a, b) => b.breakdown.tensorParallel > 2 * a.breakdown.tensorParallel,
  ],
  [
    "keys and values gathered before attention are exposed",
    { cp: 8 },
    { contextExchange: "all-gather" },
    (a, b) => b.breakdown.tensorParallel > a.breakdown.tensorParallel,
  ],
  [
    "exchanging heads moves less than gathering keys and values of as many heads",
    { cp: 8, contextExchange: "all-gather" },
    { contextExchange: "all-to-all" },
    (a, b) => b.breakdown.tensorParallel < a.breakdown.tensorParallel,
  ],
];

const onDgx = (m: Model, o: Partial<Plan>): Cost => {
  const plan = definePlan(m, { globalBatch: 16, ...o });
  const cluster = defineCluster({ host: "dgx-h100", hosts: Math.ceil(ranks(plan) / 8) });
  const e = estimate({ model: m, plan, cluster, checkMemory: false });
  if (!e.ok) throw new Error(e.reason);
  return e;
};

test.each([...flips, ...others])("%s", (_, base, change, holds) => {
  expect(holds(onDgx(llama, base), onDgx(llama, { ...base, ...change }))).toBe(true);
});

test.each([...expertFlips, ...launchFlips])("%s", (_, base, change, holds) => {
  const [a, b] = [base, { ...base, ...change }].map((o) => onDgx(mixtral, o));
  expect(holds(a!, b!)).toBe(true);
});

/** Fields that a plan may leave out; the compiler misses one that is not here. */
type OptionalField = {
  [K in keyof Plan]-?: object extends Pick<Plan, K> ? K : never;
}[keyof Plan];
const optional: Readonly<Record<OptionalField, "here" | "pipelines.test.ts">> = {
  dispatchPrecision: "here",
  expertCapacity: "here",
  stageLayers: "here",
  recomputeLayers: "here",
  matrixPrecision: "here",
  document: "here",
  attentionPrecision: "here",
  activationPrecision: "here",
  reductionPrecision: "here",
  gradientExchange: "here",
  flashVersion: "here",
  fusedLoss: "here",
  fusedRotary: "here",
  momentPrecision: "here",
  gatheredCopies: "here",
  vocabulary: "here",
  pipelines: "pipelines.test.ts",
  pipelineBatches: "pipelines.test.ts",
};

test("no option of a plan goes without a case", () => {
  const fields = [
    ...Object.keys(definePlan(mixtral, { globalBatch: 16 })),
    ...Object.entries(optional).flatMap(([field, place]) => (place === "here" ? field : [])),
  ];
  const flipped = new Set(
    [...flips, ...expertFlips, ...launchFlips, ...others].flatMap(([, , change]) =>
      Object.keys(change),
    ),
  );
  expect(fields.filter((field) => !flipped.has(field))).toEqual([]);
});
