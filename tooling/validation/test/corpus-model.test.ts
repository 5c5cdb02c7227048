import { expect, test } from "vitest";
import { modelOf, windowOf } from "../src/corpus-model.ts";
import { describe } from "../src/corpus-plan.ts";
import { type CorpusRow, parseCorpus } from "../src/corpus-row.ts";

const llama = { name: "x", layers: 6, hidden: 64, heads: 4, vocab: 100, seq: 32, act: "swiglu" };

function row(model: object, parallel: object = { gbs: 8, mbs: 1 }, rest: object = {}): CorpusRow {
  const line = { id: "x", kind: "throughput", hardware: { num_gpus: 8 }, model, parallel, ...rest };
  return parseCorpus(JSON.stringify(line), "f")[0]!;
}

test("alternating windows and five of six are read with their width, other attention is not", () => {
  expect(windowOf("alternating sliding-window(128)/full")).toEqual({ size: 128, every: 2 });
  expect(windowOf("5:1 sliding(1024):global")).toEqual({ size: 1024, every: 6 });
  expect(windowOf("3:1 gated-deltanet:full")).toBeUndefined();
  const attn = "5:1 sliding(1024):global";
  expect(modelOf(row({ ...llama, attn }))).toMatchObject({ window: { size: 1024, every: 6 } });
});

test("gpt-oss has biases, sinks and a bound", () => {
  expect(modelOf(row({ ...llama, name: "gpt-oss-20b" }))).toMatchObject({
    bias: true,
    attentionSinks: true,
    activationClamp: 7,
  });
  expect(modelOf(row(llama))).toMatchObject({ bias: false, activationClamp: 0 });
});

test("a block that a row says is parallel is", () => {
  const changed = { gbs: 8, mbs: 1, arch_changes: "parallel transformer block + LAMB" };
  expect(modelOf(row(llama, changed))).toMatchObject({ block: "parallel", sharedNorm: true });
  expect(modelOf(row(llama))).not.toHaveProperty("block");
});

test("what a row misses is said before what is not covered", () => {
  const encoder = { encoder_seq: 1024 };
  expect(describe(row({ ...llama, ...encoder, layers: null }))).toBe("missing: layers");
  expect(describe(row({ ...llama, ...encoder }, { gbs: 8 }))).toBe("missing: mbs");
  expect(describe(row({ ...llama, ...encoder }))).toBe("not covered: encoders");
});

test("Megatron-Bridge's gpt-oss rotates by elementary operations; AutoModel spreads its experts and sends tokens once", () => {
  const oss = { ...llama, name: "gpt-oss-20b", moe: { experts: 32, topk: 4, ffn: 64 } };
  const bridge = { dataset: "mbridge" };
  expect(describe(row(oss, { gbs: 8, mbs: 1 }, bridge))).toMatchObject({
    plan: { fusedRotary: false },
  });
  expect(describe(row(llama, { gbs: 8, mbs: 1 }, bridge))).not.toHaveProperty("plan.fusedRotary");
  const automodel = { gbs: 8, mbs: 1, ep: 1, kernels: "TE + DeepEP + FlexAttn" };
  expect(describe(row(oss, automodel, { id: "automodel-gpt-oss-20b" }))).toMatchObject({
    plan: { ep: 8, dispatch: "unique" },
  });
});
