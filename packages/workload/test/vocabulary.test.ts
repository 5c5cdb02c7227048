/** A vocabulary split over the pipeline ranks: held and computed once, exchanged as the paper says. */
import { expect, test } from "vitest";
import {
  type Operator,
  type Plan,
  defineModel,
  definePlan,
  parameters,
  stageOperators,
  stageParameters,
  stages,
  vocabShard,
  vocabularyExchanges,
} from "@trireme/workload";

const ways = ["two-barriers", "one-barrier", "interlaced"] as const;
const shape = { layers: 8, hidden: 64, heads: 4, vocab: 240, context: 32, headBias: true };

const flops = (list: readonly Operator[]): number =>
  list.reduce((sum, o) => sum + (o.kind === "gemm" ? o.count * o.flops : 0), 0);

test.each([true, false])(
  "every rank holds its part of the table (tied: %s), and all is held once",
  (tied) => {
    const m = defineModel({ ...shape, tied });
    for (const vocabulary of ways) {
      for (const o of [{ tp: 1 }, { tp: 2, sequenceParallel: true }]) {
        const p = definePlan(m, { pp: 4, globalBatch: 8, vocabulary, ...o });
        const list = stages(m, p);
        const held = list.map((s) => stageParameters(m, p, s));
        expect(vocabShard(m, p) * p.tp * p.pp).toBe(m.vocab);
        const sum = held.reduce((n, s) => n + s.sharded * p.tp + s.replicated, 0);
        expect(sum).toBe(parameters(m).total);
        // Stages in the middle have layers and a part of the table alone: the same.
        expect(held[1]!.total).toBe(held[2]!.total);
      }
    }
  },
);

test("products of all ranks are those of the model, whatever the way", () => {
  const m = defineModel(shape);
  const all = (p: Plan): number =>
    stages(m, p).reduce((sum, s) => sum + flops(stageOperators(m, p, s).operators), 0);
  const whole = all(definePlan(m, { pp: 4, globalBatch: 8 }));
  for (const vocabulary of ways) {
    expect(all(definePlan(m, { pp: 4, globalBatch: 8, vocabulary }))).toBe(whole);
    const v = { pp: 2, vpp: 2, schedule: "v-half" } as const;
    if (vocabulary === "interlaced") continue;
    expect(all(definePlan(m, { ...v, globalBatch: 8, vocabulary }))).toBe(whole);
  }
});

test("with two chunks a rank, the first holds the part of the table", () => {
  const m = defineModel(shape);
  const p = definePlan(m, {
    pp: 2,
    vpp: 2,
    schedule: "v-half",
    globalBatch: 8,
    vocabulary: "two-barriers",
  });
  expect(stages(m, p).map((s) => s.vocabulary === true)).toEqual([true, true, false, false]);
});

test("barriers cost passes over the logits: a scale with two, a cast beside it with one", () => {
  const m = defineModel(shape);
  const bytes = (o: Partial<Plan>): number => {
    const p = definePlan(m, { pp: 4, globalBatch: 8, fusedLoss: false, ...o });
    const { operators } = stageOperators(m, p, stages(m, p)[1]!);
    const logits = p.microbatch * p.sequence * vocabShard(m, p);
    return operators.reduce((n, x) => n + (x.kind === "loss" ? x.bytes : 0), 0) / logits;
  };
  // In bytes a logit, bf16: cast 6, maximum 4, difference 8, exponential 8, sum 4, quotient 8; product 8 and cast 6.
  expect(bytes({ vocabulary: "interlaced" })).toBe(38 + 14);
  expect(bytes({ vocabulary: "two-barriers" })).toBe(38 + 14 + 8);
  expect(bytes({ vocabulary: "one-barrier" })).toBe(38 + 14 + 8 + 6);
});

test("ranks exchange rows of the residual four times, and three numbers a token", () => {
  const m = defineModel(shape);
  const p = definePlan(m, { pp: 4, globalBatch: 8, microbatch: 2, vocabulary: "one-barrier" });
  const rows = 2 * 32 * 64 * 2;
  expect(vocabularyExchanges(m, p).map((x) => [x.operation, x.bytes * x.count])).toEqual([
    ["all-reduce", rows],
    ["broadcast", rows],
    ["all-reduce", 3 * 2 * 32 * 4],
    ["all-reduce", rows],
    ["broadcast", rows],
  ]);
  expect(vocabularyExchanges(m, definePlan(m, { pp: 4, globalBatch: 8 }))).toEqual([]);
});

test("FSDP2's copies are of every parameter once, those of the table too", () => {
  const m = defineModel({ ...shape, tied: false });
  const o = { pp: 4, dp: 2, globalBatch: 8, zero: 3, gatheredCopies: true } as const;
  for (const way of [{}, { vocabulary: "two-barriers" }] as const) {
    const p = definePlan(m, { ...o, ...way });
    for (const s of stages(m, p)) {
      const copied = stageOperators(m, p, s)
        .operators.filter((x) => x.form === "gathered" && x.pass === "forward")
        .reduce((n, x) => n + x.count * x.shape[1]!, 0);
      expect(copied).toBe(stageParameters(m, p, s).total);
    }
  }
});
