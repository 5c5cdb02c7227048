/** Every split leaves what is computed and held as it is: experts, windows, latents, adapters, encoders, prediction. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { TriremeError } from "@trireme/core";
import {
  type Model,
  type ModelOptions,
  type Operator,
  type Plan,
  type PlanOptions,
  defineModel,
  definePlan,
  expertReplicas,
  expertRows,
  modelFlops,
  parameters,
  rankTokens,
  stageOperators,
  stageParameters,
  stages,
  vocabShard,
} from "@trireme/workload";

const llama: ModelOptions = {
  layers: 6,
  hidden: 64,
  heads: 8,
  kvHeads: 8,
  ffn: 128,
  vocab: 120,
  context: 64,
  position: "rotary",
  norm: "rmsnorm",
  activation: "swiglu",
  bias: false,
  tied: false,
};
const experts = { count: 8, active: 2, ffn: 32 };
const encoder = { layers: 2, hidden: 32, heads: 8, patch: 12, tokens: 16, projector: [48] };
const mamba = { heads: 16, headDim: 8, stateDim: 4, groups: 8, chunk: 16 };
const deltaNet = { keyHeads: 8, valueHeads: 16, keyDim: 4, valueDim: 8, chunk: 16 };
const latent = { queryRank: 24, keyValueRank: 16, nopeDim: 8, ropeDim: 4, valueDim: 6 };

/** A model of each kind that the operators tell apart. */
const kinds: Readonly<Record<string, Model>> = Object.fromEntries(
  Object.entries({
    gpt: { layers: 6, hidden: 64, heads: 8, vocab: 120, context: 64 },
    window: { window: { size: 8, every: 2 } },
    parallel: { block: "parallel", norm: "layernorm", bias: true },
    norms: { normPlacement: "both", qkNorm: "head", embeddingNorm: true },
    post: { normPlacement: "post", qkNorm: "all" },
    bert: { causal: false, segments: 2, pooler: false, finalNorm: false, embeddingNorm: true },
    latent: { latent },
    "latent without queries'": { latent: { ...latent, queryRank: 0 } },
    experts: { experts },
    "shared expert": { experts: { ...experts, sharedFfn: 32, sharedGate: true, denseLayers: 1 } },
    "every second": { experts: { ...experts, every: 2 }, window: { size: 8, every: 3 } },
    deepseek: { latent, experts: { ...experts, sharedFfn: 32, denseLayers: 2 }, prediction: 2 },
    prediction: { prediction: 1 },
    lora: {
      adapter: { rank: 4, targets: ["query", "key", "value", "output", "gate", "up", "down"] },
    },
    "lora side by side": { adapter: { rank: 4, targets: ["qkv", "gate-up"], dropout: 0.1 } },
    qlora: { adapter: { rank: 4, base: "nf4" }, experts },
    hybrid: { pattern: "M*E", mamba, experts: { ...experts, sharedFfn: 32 } },
    "delta net": { pattern: "GE *E/*-", deltaNet, experts, prediction: 2, attentionGate: true },
    vision: { encoders: [encoder] },
    "frozen vision": { encoders: [{ ...encoder, frozen: true, merge: 4 }], adapter: { rank: 2 } },
  } satisfies Record<string, Partial<ModelOptions>>).map(([name, o]) => [
    name,
    defineModel({ ...(name === "gpt" ? {} : llama), ...(o as ModelOptions), name }),
  ]),
);

const splits = fc.record({
  tp: fc.constantFrom(1, 2, 4),
  cp: fc.constantFrom(1, 2),
  pp: fc.constantFrom(1, 2, 3),
  vpp: fc.constantFrom(1, 2),
  dp: fc.constantFrom(1, 2, 4),
  ep: fc.constantFrom(1, 2, 4, 8),
  etp: fc.constantFrom(1, 2),
  microbatch: fc.constantFrom(1, 2),
  sequenceParallel: fc.boolean(),
  contextExchange: fc.constantFrom("ring", "all-gather", "all-to-all"),
  dispatch: fc.constantFrom("all-to-all", "unique", "all-gather"),
  recompute: fc.constantFrom("none", "selective", "operators", "rematerialise", "experts", "full"),
  zero: fc.constantFrom(0, 1, 2, 3),
} as const);

/** A legal plan near what was drawn: experts need sequence parallelism and ranks that they fold into. */
function planOf(m: Model, o: PlanOptions): Plan | undefined {
  const dense = { ...o, ep: 1, etp: 1 };
  try {
    return definePlan(m, m.experts === undefined ? dense : o);
  } catch (error) {
    if (error instanceof TriremeError && error.code === "PLAN") return undefined;
    throw error;
  }
}

const matrices = new Set<Operator["kind"]>(["gemm", "grouped-gemm", "attention", "scan"]);

/** Products that tensor parallelism does not split: each rank does all of them on its part of the tokens, or on all. */
function products(m: Model, p: Plan): Operator[] {
  return stages(m, p)
    .flatMap((s) => Array.from(stageOperators(m, p, s).operators))
    .filter((o) => matrices.has(o.kind) && o.pass !== "recompute");
}

const sum = (operators: readonly Operator[]): number =>
  operators.reduce((total, o) => total + o.flops * o.count, 0);

// Products of scans are more than the convention counts: `hybrid.test.ts`.
const unscanned = Object.entries(kinds).filter(([, m]) => m.pattern === undefined);

test.each(unscanned)("%s: one rank's products are the FLOPs of the exact convention", (_, m) => {
  const plan = definePlan(m, { globalBatch: 2, microbatch: 2 });
  const done = products(m, plan).filter((o) => {
    // Routers and shared gates are left out of counts by matrices.
    const small = m.experts !== undefined && o.kind === "gemm" && isRouter(m, o);
    return !small;
  });
  const tokens = 2 * plan.sequence;
  const flops = tokens * modelFlops(m, plan, "exact");
  // Flash attention backward computes the scores once more: 5 products where the convention counts 4.
  const again = done
    .filter((o) => o.kind === "attention" && o.pass === "forward")
    .reduce((total, o) => total + scores(o) * o.count, 0);
  const backward = products(m, plan).some(
    (o) => o.kind === "attention" && o.pass === "input-gradient",
  );
  expect(backward).toBe(true);
  const trained = frozenScores(m, plan);
  expect(sum(done) - again + trained).toBeCloseTo(flops, -1);
});

function isRouter(m: Model, o: Operator): boolean {
  const [, a, b, c] = o.shape;
  const { count } = m.experts!;
  return [count, 1].some((n) => [a, b, c].includes(n)) && [a, b, c].includes(m.hidden);
}

/** FLOPs of queries times keys in a forward attention: its part by width of keys and of values. */
function scores(o: Operator): number {
  const headDim = o.shape[4]!;
  const valueDim = Number(/-v(\d+)/.exec(o.form)?.[1] ?? headDim);
  return (o.flops * headDim) / (headDim + valueDim);
}

/** Scores of encoders that are run forward alone. */
function frozenScores(m: Model, p: Plan): number {
  if (m.encoders.every((e) => !e.frozen && m.adapter === undefined)) return 0;
  return products(m, p)
    .filter((o) => o.kind === "attention" && o.pass === "forward" && o.form.includes("full"))
    .reduce((total, o) => total + scores(o) * o.count, 0);
}

test.each(Object.entries(kinds))(
  "%s: every split does one rank's products, copies named",
  (_, m) => {
    fc.assert(
      fc.property(splits, (o) => {
        const pp = o.pp > 1 ? o : { ...o, vpp: 1 };
        const globalBatch = 8 * 3;
        const p = planOf(m, { ...pp, globalBatch });
        fc.pre(p !== undefined);
        const whole = definePlan(m, {
          ...o,
          tp: 1,
          cp: 1,
          pp: 1,
          vpp: 1,
          dp: 1,
          ep: 1,
          etp: 1,
          globalBatch,
        });
        const rows = p.microbatch * p.sequence;
        const one = products(m, whole);
        const split = products(m, p);
        // Which products each tensor-parallel rank repeats: of its tokens under sequence parallelism,
        // of all tokens without; a routed expert's rows are each on one rank of the replica.
        for (const pass of ["forward", "input-gradient", "weight-gradient"] as const) {
          const of = (list: readonly Operator[], kind: Operator["kind"]): number =>
            sum(list.filter((x) => x.kind === kind && x.pass === pass));
          expect(p.tp * p.cp * of(split, "attention")).toBeCloseTo(of(one, "attention"), 3);
          // Each rank of a replica computes computed/etp-th parts of rows: together all rows once.
          expect(p.tp * p.cp * of(split, "grouped-gemm")).toBeCloseTo(of(one, "grouped-gemm"), 3);
          expect(p.tp * p.cp * of(split, "scan")).toBeCloseTo(of(one, "scan"), 3);
        }
        const repeated = copies(m, p, rows);
        expect(p.tp * p.cp * sum(split.filter((x) => x.kind === "gemm")) - repeated).toBeCloseTo(
          sum(one.filter((x) => x.kind === "gemm")) + padding(m, p, rows),
          1,
        );
      }),
      { numRuns: 25 },
    );
  },
);

/** FLOPs that more than one tensor-parallel rank does: products without a split dimension, on whole tokens. */
function copies(m: Model, p: Plan, rows: number): number {
  const extra = p.tp - 1;
  const train = m.adapter === undefined ? 3 : 2;
  let flops = 0;
  if (m.latent !== undefined && !p.sequenceParallel) {
    const { queryRank, keyValueRank, ropeDim } = m.latent;
    flops +=
      train *
      2 *
      rows *
      m.hidden *
      (queryRank + keyValueRank + ropeDim) *
      (m.layers + m.prediction);
  }
  for (const e of m.encoders) {
    const [trunk, projector] = [
      e.frozen || m.adapter !== undefined ? 1 : 3,
      m.adapter === undefined ? 3 : 1,
    ];
    flops += trunk * 2 * p.microbatch * e.tokens * e.patch * e.hidden;
    const widths = [e.hidden * e.merge, ...e.projector, m.hidden];
    for (let i = 1; i < widths.length; i++) {
      flops += (projector * 2 * p.microbatch * e.tokens * widths[i - 1]! * widths[i]!) / e.merge;
    }
  }
  if (m.adapter !== undefined) {
    // Every rank computes the thin side that is not split: A of column-, B of row-parallel matrices.
    flops += 3 * 2 * rows * m.adapter.rank * m.hidden * m.adapter.targets.length * m.layers;
  }
  return extra * flops;
}

/** FLOPs of vocabulary rows that only pad it. */
function padding(m: Model, p: Plan, rows: number): number {
  const logits = m.adapter === undefined ? 3 : 2;
  return logits * 2 * rows * m.hidden * (vocabShard(m, p) * p.tp - m.vocab) * (1 + m.prediction);
}

test.each(Object.entries(kinds))(
  "%s: the ranks' parameters are the model's and stated copies",
  (_, m) => {
    fc.assert(
      fc.property(splits, (o) => {
        const p = planOf(m, { ...(o.pp > 1 ? o : { ...o, vpp: 1 }), globalBatch: 24 });
        fc.pre(p !== undefined);
        const list = stages(m, p);
        let [held, trainable] = [0, 0];
        for (const s of list) {
          const of = stageParameters(m, p, s);
          expect(of.total).toBeCloseTo(of.sharded + of.replicated + of.experts, 6);
          expect(of.trainable).toBeLessThanOrEqual(of.total);
          held += p.tp * of.sharded + of.replicated + p.ep * p.etp * of.experts;
          trainable += of.trainable;
        }
        const table = p.tp * vocabShard(m, p) * m.hidden;
        // A tied head on another stage, and the table that prediction modules look tokens up in.
        const apart = list.length > 1 ? (m.tied ? 1 : m.prediction > 0 ? 1 : 0) : 0;
        const rowsPadded = (table - m.vocab * m.hidden) * (m.tied ? 1 : 2);
        expect(held).toBeCloseTo(parameters(m).total + apart * table + rowsPadded, 6);
        expect(trainable > 0).toBe(parameters(m).trainable > 0);
      }),
      { numRuns: 25 },
    );
  },
);

test("what is trained on one rank is what the model says, and the optimizer updates all of it", () => {
  for (const m of Object.values(kinds)) {
    const p = definePlan(m, { globalBatch: 1 });
    const [s] = stages(m, p);
    expect(stageParameters(m, p, s!).trainable).toBe(parameters(m).trainable);
    const update = stageOperators(m, p, s!).operators.filter((o) => o.kind === "optimizer");
    expect(update.map((o) => o.shape[0])).toEqual([parameters(m).trainable]);
  }
});

test("no token is lost or doubled on its way to the experts", () => {
  const m = kinds["experts"]!;
  fc.assert(
    fc.property(splits, fc.constantFrom(undefined, 0.5, 1, 1.25), (o, expertCapacity) => {
      const capacity = expertCapacity === undefined ? {} : { expertCapacity };
      const p = planOf(m, { ...(o.pp > 1 ? o : { ...o, vpp: 1 }), globalBatch: 24, ...capacity });
      fc.pre(p !== undefined);
      const rows = expertRows(m.experts!, p);
      const replica = p.tp * p.cp;
      // Every token of the replica is routed by one rank.
      expect(replica * rankTokens(p)).toBe(p.microbatch * p.sequence);
      const wanted = rankTokens(p) * m.experts!.active * (expertCapacity ?? 1);
      expect(rows.sent).toBe(wanted);
      // All ranks of the experts' mesh compute what all ranks sent, each row in etp parts.
      const ranks = p.ep * p.etp * expertReplicas(p);
      expect(ranks).toBe(replica * p.dp);
      expect((ranks * rows.computed) / p.etp).toBeCloseTo(ranks * rows.sent, 6);
      expect(rows.held * p.ep).toBe(m.experts!.count);
      if (p.dispatch === "unique") expect(rows.exchanged).toBeLessThanOrEqual(rows.sent);
      else expect(rows.exchanged).toBe(rows.sent);
    }),
  );
});
