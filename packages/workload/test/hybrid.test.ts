/** Patterns, state-space layers and delta nets: what they hold, compute and move, against the published shapes and formulas. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CollectiveOperator,
  type LayerForm,
  type Model,
  type ModelOptions,
  type PlanOptions,
  countForms,
  defineModel,
  definePlan,
  firstLayerOf,
  layerFormAt,
  layerForms,
  model,
  modelFlops,
  parameters,
  stageOperators,
  stages,
} from "@trireme/workload";

const small: ModelOptions = {
  layers: 4,
  hidden: 64,
  heads: 4,
  vocab: 128,
  context: 64,
  bias: false,
};
const mamba = { heads: 8, headDim: 16, stateDim: 8, groups: 4, chunk: 16 };
const deltaNet = { keyHeads: 4, valueHeads: 8, keyDim: 8, valueDim: 16, chunk: 16 };
const experts = { count: 8, active: 2, ffn: 32 };

const form = (
  mixer: LayerForm["mixer"],
  block: "dense" | "experts" | "none",
  windowed = false,
): LayerForm => ({ mixer, windowed, dense: block === "dense", experts: block === "experts" });

test("a pattern names each layer, in one letter or in words, and repeats", () => {
  const m = defineModel({ ...small, layers: 8, pattern: "M*-E", mamba, experts });
  expect(layerForms(m)).toEqual([
    form("mamba", "none"),
    form("attention", "none"),
    form("none", "dense"),
    form("none", "experts"),
  ]);
  expect(countForms(m, 0, 8)).toEqual([2, 2, 2, 2]);
  expect(countForms(m, 3, 3)).toEqual([1, 1, 0, 1]);
  const words = defineModel({
    ...small,
    layers: 8,
    pattern: "GE GE W- *E",
    deltaNet,
    experts,
    window: { size: 8 },
  });
  expect(layerForms(words)).toEqual([
    form("delta-net", "experts"),
    form("attention", "dense", true),
    form("attention", "experts"),
  ]);
  expect(countForms(words, 0, 8)).toEqual([4, 2, 2]);
});

test("counts by pattern are those of a walk, whatever repeats and wherever a stage begins", () => {
  const words = fc.constantFrom("M", "*", "-", "E", "M-", "ME", "*-", "*E");
  fc.assert(
    fc.property(
      fc.array(words, { minLength: 2, maxLength: 7 }),
      fc.integer({ min: 1, max: 4 }),
      fc.option(words, { nil: undefined }),
      fc.nat(40),
      fc.nat(40),
      (list, times, module, a, b) => {
        const text = `${list.join(" ")}${module === undefined ? "" : `/${module}`}`;
        const layers = list.length * times;
        const m = defineModel({
          ...small,
          layers,
          pattern: text,
          prediction: 2,
          ...(text.includes("M") ? { mamba } : {}),
          ...(text.includes("E") ? { experts } : {}),
        });
        const forms = layerForms(m);
        const walk = Array.from({ length: layers }, (_, i) => list[i % list.length]!);
        const last = module ?? list.at(-1)!;
        const distinct = [...new Set([...walk, last])];
        expect(forms).toHaveLength(distinct.length);
        for (let i = 0; i < layers; i++) {
          expect(layerFormAt(m, i)).toBe(distinct.indexOf(walk[i]!));
        }
        expect(layerFormAt(m, layers)).toBe(distinct.indexOf(last));
        expect(distinct.map((_, i) => firstLayerOf(m, i))).toEqual(
          distinct.map((word) => (walk.includes(word) ? walk.indexOf(word) : layers)),
        );
        const [from, to] = [Math.min(a, b, layers), Math.min(Math.max(a, b), layers)];
        expect(countForms(m, from, to - from)).toEqual(
          distinct.map((word) => walk.slice(from, to).filter((w) => w === word).length),
        );
        // What lies beyond the layers is a prediction module.
        expect(countForms(m, layers, 1)[distinct.indexOf(last)]).toBe(1);
      },
    ),
  );
});

test("layers of two blocks are those of one twice as many: parameters, FLOPs, kernels", () => {
  const shape = { ...small, mamba, experts };
  const blocks = defineModel({ ...shape, layers: 6, pattern: "ME *- M-" });
  const layers = defineModel({ ...shape, layers: 12, pattern: "ME*-M-" });
  expect(parameters(layers).total).toBe(parameters(blocks).total);
  for (const convention of ["model-causal", "matrix-full", "exact", "hardware"] as const) {
    const at = (m: Model): number => modelFlops(m, { sequence: 64 }, convention);
    expect(at(layers)).toBe(at(blocks));
  }
  const kernels = (m: Model): Map<string, number> => {
    const p = definePlan(m, { globalBatch: 1 });
    const counts = new Map<string, number>();
    for (const o of stageOperators(m, p, stages(m, p)[0]!).operators) {
      counts.set(o.key, (counts.get(o.key) ?? 0) + o.count);
    }
    return counts;
  };
  const sorted = (m: Model): unknown => [...kernels(m)].toSorted(([a], [b]) => a.localeCompare(b));
  expect(sorted(layers)).toEqual(sorted(blocks));
});

test("attention and feed-forward layers by pattern are the usual blocks to the last number", () => {
  const usual = model("llama3-8b");
  const { layers } = usual;
  for (const [pattern, n] of [
    ["*- *-", layers],
    ["*-", 2 * layers],
  ] as const) {
    const m = defineModel({ ...usual, layers: n, pattern });
    expect(parameters(m).total).toBe(parameters(usual).total);
    const plan = { globalBatch: 1, tp: 4, sequenceParallel: true, sequence: 2048 };
    const volume = (of: Model): number =>
      stageOperators(of, definePlan(of, plan), stages(of, definePlan(of, plan))[0]!)
        .collectives.filter((c) => c.axis === "tp")
        .reduce((sum, c) => sum + c.bytes * c.count, 0);
    expect(volume(m)).toBe(volume(usual));
  }
});

test("published hybrids have their checkpoints' parameters to the digit", () => {
  const published: Readonly<Record<string, number>> = {
    "mamba2-130m": 128_989_632,
    "mamba2-370m": 368_346_624,
    "mamba2-780m": 780_161_280,
    "mamba2-1.3b": 1_343_757_312,
    "mamba2-2.7b": 2_702_599_680,
    "bamba-9b": 9_780_235_392,
    // 31,577,937,344 in 16 bits, and a bias for each of 23 × 128 experts in 32.
    "nemotron3-nano-30b-a3b": 31_577_937_344 + 23 * 128,
    "qwen3-next-80b-a3b": 79_674_391_296,
  };
  for (const [name, total] of Object.entries(published)) {
    expect({ name, total: parameters(model(name)).total }).toEqual({ name, total });
  }
  // With its prediction module, which shares embedding and head.
  const next = model("qwen3-next-80b-a3b");
  const whole = defineModel({ ...next, prediction: 1, pattern: "GE GE GE *E/*E" });
  expect(parameters(whole).total).toBe(81_324_862_720);
});

test("published hybrids round to what their reports print", () => {
  const billions = (n: number, digits: number): string => (n / 1e9).toFixed(digits);
  const nano = model("nemotron3-nano-30b-a3b");
  const { total, active } = parameters(nano);
  // Nemotron 3 Nano (arXiv 2512.20848): 31.6B, of which 3.2B act on a token, 3.6B with its embedding.
  expect(billions(total, 1)).toBe("31.6");
  expect(billions(active, 1)).toBe("3.6");
  expect(billions(active - nano.vocab * nano.hidden, 1)).toBe("3.2");
  expect(
    ["8", "47", "56"].map((b) => billions(parameters(model(`nemotron-h-${b}b`)).total, 0)),
  ).toEqual(["8", "47", "56"]);
  // Nemotron-H (arXiv 2504.03624), Table 1: 24, 24 and 4 layers; 54, 54 and 10.
  const layers = (name: string): readonly number[] =>
    countForms(model(name), 0, model(name).layers);
  expect(layers("nemotron-h-8b")).toEqual([24, 24, 4]);
  expect(layers("nemotron-h-56b")).toEqual([54, 54, 10]);
  expect(layers("nemotron3-nano-30b-a3b")).toEqual([23, 23, 6]);
  expect(layers("qwen3-next-80b-a3b")).toEqual([36, 12]);
});

/**
 * Forward FLOPs of a token as Megatron-Bridge counts hybrids (flop_utils.py, hybrid_flops): projections in and out, 7 for each
 * number of the state, half the score matrix, routed and shared experts, logits. It takes the inner width for twice the hidden.
 */
function bridgeFlops(m: Model, sequence: number, inner: number): number {
  const { hidden: h } = m;
  const { heads, stateDim, groups } = m.mamba!;
  const scan =
    2 * h * (2 * inner + 2 * groups * stateDim + heads) + 7 * inner * stateDim + 2 * inner * h;
  const width = m.headDim * m.heads;
  const attention = 4 * width * (h + (h * m.kvHeads) / m.heads) + 2 * width * sequence;
  const e = m.experts;
  const mixture = e === undefined ? 0 : 4 * h * (e.ffn * e.active + e.sharedFfn);
  const counts = countForms(m, 0, m.layers);
  const each = layerForms(m).map((f) =>
    f.mixer === "mamba"
      ? scan
      : f.mixer === "attention"
        ? attention
        : f.experts
          ? mixture
          : 4 * h * m.ffn,
  );
  return each.reduce((sum, flops, i) => sum + flops * counts[i]!, 2 * h * m.vocab);
}

test("FLOPs of hybrids are Megatron-Bridge's count, and its published rates follow from it", () => {
  for (const name of ["nemotron-h-8b", "nemotron-h-56b", "nemotron3-nano-30b-a3b"]) {
    const m = model(name);
    const inner = m.mamba!.heads * m.mamba!.headDim;
    const ours = modelFlops(m, { sequence: 8192 }, "matrix-causal");
    // The same terms summed in another order: rounding only.
    expect(ours / (3 * bridgeFlops(m, 8192, inner))).toBeCloseTo(1, 12);
  }
  // 22.09 to 22.56 GFLOP a token are quotients of rounded TFLOP/s and tokens/s; 22.28 their median.
  const nano = model("nemotron3-nano-30b-a3b");
  expect((3 * bridgeFlops(nano, 8192, 2 * nano.hidden)) / 1e9).toBeCloseTo(22.28, 2);
  // Nano's state-space layers are 1.52 times as wide as its residual stream, not twice.
  expect(modelFlops(nano, { sequence: 8192 }, "matrix-causal") / 1e9).toBeCloseTo(20.77, 2);
});

test("a scan counts by its recurrence, or by the products of its chunks", () => {
  const m = defineModel({ ...small, pattern: "M", mamba });
  const without = defineModel({ ...small, pattern: "M", mamba: { ...mamba, stateDim: 4 } });
  // B and C have other widths too: what remains of the difference is the scan's.
  const scan = (convention: "matrix-full" | "exact"): number => {
    const at = (of: Model): number => modelFlops(of, { sequence: 64 }, convention) / 3 / 4;
    return at(m) - at(without) - 2 * 64 * (2 * 4 * 4);
  };
  const state = 8 * 16 * 4;
  expect(scan("matrix-full")).toBe(7 * state);
  // Pairs within a chunk of 16: 8.5 a token, of each group's scores; states and outputs twice 2.
  expect(scan("exact")).toBe(4 * state + 2 * 8.5 * 4 * 4);
  const net = defineModel({ ...small, pattern: "G", deltaNet });
  const wide = defineModel({ ...small, pattern: "G", deltaNet: { ...deltaNet, keyDim: 16 } });
  const at = (of: Model): number => modelFlops(of, { sequence: 64 }, "matrix-full") / 3 / 4;
  expect(at(wide) - at(net) - 2 * 64 * (2 * 4 * 8)).toBe(8 * (8 * 8 * 16));
});

function operatorsOf(m: Model, o: PlanOptions): ReturnType<typeof stageOperators> {
  const p = definePlan(m, o);
  return stageOperators(m, p, stages(m, p)[0]!);
}

test("a chunked scan has the products of Listing 1 of the Mamba-2 paper, forward", () => {
  const m = defineModel({ ...small, pattern: "M", mamba });
  const { operators } = operatorsOf(m, { globalBatch: 2, microbatch: 2 });
  const scans = operators.filter((o) => o.kind === "scan" && o.pass === "forward");
  // 2 sequences of 4 chunks: 4 groups of 16 × 16 scores, 8 heads' states of 16 × 8, the outputs of both.
  expect(scans.map((o) => [o.form, o.shape])).toEqual([
    ["ssd-scores", [32, 16, 16, 8]],
    ["ssd-states", [64, 16, 8, 16]],
    ["ssd-carry", [64, 16, 8, 0]],
    ["ssd-output", [64, 16, 16, 16]],
  ]);
  const tokens = 2 * 64;
  const chunked =
    modelFlops(m, { sequence: 64 }, "exact") - modelFlops(m, { sequence: 64 }, "matrix-full");
  const state = 8 * 16 * 8;
  const products = scans
    .filter((o) => o.form !== "ssd-carry")
    .reduce((sum, o) => sum + o.flops * o.count, 0);
  // The kernels compute scores behind the diagonal too (8 of 16 pairs), and of the outputs' half a pair less.
  const more = 2 * (7.5 * 4 * 8 - 0.5 * 8 * 16);
  expect(products).toBe(tokens * (chunked / 3 + 4 * (7 * state + more)));
});

test("sequences shorter than a chunk are one chunk, and uneven ones round up", () => {
  const m = defineModel({ ...small, pattern: "M", mamba });
  const scores = (sequence: number): readonly number[] =>
    operatorsOf(m, { globalBatch: 1, sequence }).operators.find((o) => o.form === "ssd-scores")!
      .shape;
  expect(scores(7)).toEqual([4, 7, 7, 8]);
  expect(scores(17)).toEqual([8, 16, 16, 8]);
});

const sent = (
  list: readonly CollectiveOperator[],
  axis: CollectiveOperator["axis"],
  kind: CollectiveOperator["kind"],
  pass: CollectiveOperator["pass"],
): number =>
  list
    .filter((c) => c.axis === axis && c.kind === kind && c.pass === pass)
    .reduce((sum, c) => sum + c.bytes * c.count, 0);

test("tensor parallelism gathers and reduces once for each mixer and dense block", () => {
  const m = defineModel({ ...small, layers: 5, pattern: "MEM*-", mamba, experts });
  const { collectives } = operatorsOf(m, { globalBatch: 1, tp: 4, sequenceParallel: true });
  const activation = 64 * 64 * 2;
  // Two state-space layers, attention and a dense block; routed tokens stay where they are; logits gather, the embedding reduces.
  expect(sent(collectives, "tp", "all-gather", "forward")).toBe(5 * activation);
  expect(sent(collectives, "tp", "reduce-scatter", "forward")).toBe(5 * activation);
});

test("context parallelism exchanges heads for tokens around a scan, and back", () => {
  for (const [pattern, o, projected, inner] of [
    ["M", { mamba }, 2 * 128 + 2 * 4 * 8 + 8, 128],
    ["G", { deltaNet }, 2 * 32 + 2 * 128 + 2 * 8, 128],
  ] as const) {
    const m = defineModel({ ...small, pattern, ...o });
    const { collectives, operators } = operatorsOf(m, { globalBatch: 1, tp: 2, cp: 2 });
    const tokens = (64 * 2) / 2 / 2;
    const moved = 4 * tokens * (projected + inner);
    expect(sent(collectives, "cp", "all-to-all", "forward")).toBe(moved);
    expect(sent(collectives, "cp", "all-to-all", "input-gradient")).toBe(moved);
    expect(sent(collectives, "cp", "all-gather", "forward")).toBe(0);
    // Each rank scans a quarter of the heads over all tokens.
    const whole = operatorsOf(m, { globalBatch: 1 }).operators;
    const scans = (list: typeof operators): number =>
      list.filter((x) => x.kind === "scan").reduce((sum, x) => sum + x.flops * x.count, 0);
    expect(4 * scans(operators)).toBe(scans(whole));
  }
});

test("recomputing whole layers scans twice forward; recomputing the attention core does not", () => {
  const m = defineModel({ ...small, pattern: "M", mamba });
  const again = (recompute: "selective" | "rematerialise" | "operators" | "full"): number =>
    operatorsOf(m, { globalBatch: 1, recompute }).operators.filter(
      (o) => o.kind === "scan" && o.pass === "recompute",
    ).length;
  expect([again("selective"), again("rematerialise")]).toEqual([0, 0]);
  expect([again("operators"), again("full")]).toEqual([4, 4]);
});

const refused: readonly (readonly [string, Partial<ModelOptions>, string])[] = [
  ["a letter that is none", { pattern: "MX" }, 'layer "X" must be one of M, G, *, W, one of -, E'],
  ["two mixers in a layer", { pattern: "M* -" }, 'layer "M*" must be one of'],
  ["a block before its mixer", { pattern: "-M *" }, 'layer "-M" must be one of'],
  ["no layer", { pattern: " " }, "names no layer; leave it out"],
  ["modules that differ", { pattern: "*-/*/-", prediction: 2 }, "name one form"],
  ["layers that do not repeat", { pattern: "*-*" }, "layers 4 are not a multiple of the 3"],
  ["a letter without its fields", { pattern: "M*" }, 'pattern "M*" has M; state mamba'],
  [
    "fields without their letter",
    { pattern: "*-", mamba },
    'pattern "*-" has no M; leave mamba out',
  ],
  ["fields without a pattern", { mamba }, "mamba has no layer; name its layers M in a pattern"],
  [
    "modules that are not there",
    { pattern: "*-/*" },
    "names prediction modules, but prediction is 0",
  ],
  [
    "blocks beside each other",
    { pattern: "*-", block: "parallel" },
    "one after another, not parallel",
  ],
  ["scans backward", { pattern: "M", mamba, causal: false }, "run forward; use causal true"],
  [
    "a step between experts",
    { pattern: "*E", experts: { ...experts, every: 2 } },
    "the pattern says which layers have experts; leave both out",
  ],
  [
    "a step between windows",
    { pattern: "W*", window: { size: 4, every: 2 } },
    "window.every 2: the pattern says which layers have it",
  ],
  [
    "groups that do not divide",
    { pattern: "M", mamba: { ...mamba, groups: 3 } },
    "mamba.heads 8 is not a multiple of groups 3; use groups 2",
  ],
  [
    "heads that do not divide",
    { pattern: "G", deltaNet: { ...deltaNet, keyHeads: 3 } },
    "deltaNet.valueHeads 8 is not a multiple of keyHeads 3; use keyHeads 2",
  ],
  [
    "no state",
    { pattern: "M", mamba: { ...mamba, stateDim: 0 } },
    "mamba.stateDim 0 must be a whole",
  ],
  [
    "a gate on latent attention",
    {
      attentionGate: true,
      position: "rotary",
      latent: { keyValueRank: 8, nopeDim: 8, ropeDim: 8, valueDim: 8 },
    },
    "attentionGate scales what plain attention gives",
  ],
  [
    "adapters",
    { pattern: "*-", adapter: { rank: 2 } },
    "adapters of a pattern's layers are not covered",
  ],
];

test.each(refused)("a model is refused in one line: %s", (_, o, words) => {
  let message = "";
  try {
    defineModel({ ...small, ...o });
  } catch (error) {
    ({ message } = error as Error);
  }
  expect(message).toContain(words);
  expect(message).not.toContain("\n");
});

test("a plan splits the heads and groups that there are, and no others", () => {
  const m = defineModel({ ...small, heads: 1, ffn: 7, pattern: "M", mamba });
  const plan = (o: PlanOptions) => () => definePlan(m, o);
  // One attention head and a width of 7 bind no layer of this model.
  expect(plan({ globalBatch: 1, tp: 4 })).not.toThrow();
  expect(plan({ globalBatch: 1, tp: 8 })).toThrow(
    "mamba.groups 4 is not a multiple of tp 8; the nearest legal tp is 4",
  );
  expect(plan({ globalBatch: 1, tp: 4, cp: 4 })).toThrow(
    "context parallel: mamba.heads 8 / tp 4 = 2 is not a multiple of cp 4; the nearest legal cp is 2",
  );
});
