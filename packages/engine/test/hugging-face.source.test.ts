import { decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import { toBf16 } from "@trireme/collectives";
import { createRng } from "@trireme/core";
import { fromHuggingFace, toHuggingFace } from "@trireme/engine";
import type { Model, ModelOptions } from "@trireme/workload";
import { expect, test } from "vitest";
import { gpt, latentForm, llama, mixtral, qwenForm } from "./equality.ts";
import { smallRun, takeSnapshot, trainSteps, withRuntime } from "./small-run.ts";

const modelOf = (form: Partial<ModelOptions>): Model => smallRun({}, form).model;

type Shapes = Readonly<Record<string, readonly number[]>>;

const top = { "model.embed_tokens": [31, 32], "model.norm": [32], lm_head: [31, 32] };
const norms = { input_layernorm: [32], post_attention_layernorm: [32] };
const latent = {
  "self_attn.q_a_proj": [24, 32],
  "self_attn.q_a_layernorm": [24],
  "self_attn.q_b_proj": [48, 24],
  "self_attn.kv_a_proj_with_mqa": [20, 32],
  "self_attn.kv_a_layernorm": [16],
  "self_attn.kv_b_proj": [64, 16],
  "self_attn.o_proj": [32, 32],
};
const grouped = {
  "self_attn.q_proj": [32, 32],
  "self_attn.k_proj": [16, 32],
  "self_attn.v_proj": [16, 32],
  "self_attn.o_proj": [32, 32],
};
const block = (name: string, [gate, up, down]: readonly string[], ffn: number): Shapes => ({
  [`${name}.${gate}`]: [ffn, 32],
  [`${name}.${up}`]: [ffn, 32],
  [`${name}.${down}`]: [32, ffn],
});
const names = ["gate_proj", "up_proj", "down_proj"];
const experts = (name: string, of: readonly string[]): Shapes =>
  Object.assign({}, ...[0, 1, 2, 3].map((e) => block(`${name}.experts.${e}`, of, 24)));

/** The tensors of files of four layers, as published `model.safetensors.index.json` have them. */
const files: Readonly<Record<string, readonly [Partial<ModelOptions>, (layer: number) => Shapes]>> =
  {
    Llama: [llama, () => ({ ...norms, ...grouped, ...block("mlp", names, 128) })],
    "DeepSeek-V3": [
      latentForm,
      (layer) => ({
        ...norms,
        ...latent,
        ...(layer === 0
          ? block("mlp", names, 48)
          : {
              "mlp.gate": [4, 32],
              "mlp.gate.e_score_correction_bias": [4],
              ...experts("mlp", names),
              ...block("mlp.shared_experts", names, 24),
            }),
      }),
    ],
    Mixtral: [
      { ...mixtral, experts: { ...mixtral.experts, sharedFfn: 0 } },
      () => ({
        ...norms,
        ...grouped,
        "block_sparse_moe.gate": [4, 32],
        ...experts("block_sparse_moe", ["w1", "w3", "w2"]),
      }),
    ],
    "Qwen's mixtures": [
      { ...qwenForm, outputBias: false, experts: { ...qwenForm.experts, routerBias: false } },
      () => ({
        ...norms,
        ...grouped,
        "self_attn.q_norm": [8],
        "self_attn.k_norm": [8],
        "mlp.gate": [4, 32],
        ...experts("mlp", names),
        ...block("mlp.shared_expert", names, 24),
        "mlp.shared_expert_gate": [1, 32],
      }),
    ],
  };

function shapesOf(layer: (index: number) => Shapes): Map<string, readonly number[]> {
  const weight = (name: string): string => (name.endsWith("bias") ? name : `${name}.weight`);
  const layers = [0, 1, 2, 3].flatMap((i) =>
    Object.entries(layer(i)).map(([name, shape]) => [`model.layers.${i}.${name}`, shape] as const),
  );
  return new Map([...Object.entries(top), ...layers].map(([name, shape]) => [weight(name), shape]));
}

const rng = createRng(9);
const random = (length: number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length }, () => rng.normal() / 8);

test.each(Object.entries(files))("files of %s are read, and written as they were", (_, file) => {
  const [form, layer] = file;
  const entries = [...shapesOf(layer)].map(([name, shape]) => {
    const values = random(shape.reduce((a, b) => a * b, 1));
    return { name, dtype: "F32", shape, data: new Uint8Array(values.buffer) } as const;
  });
  const halves = [entries.slice(0, 5), entries.slice(5)].map((some) => encodeSafetensors(some));
  const model = modelOf(form);
  const snapshot = fromHuggingFace(halves, model);
  expect(snapshot.step).toBe(0);
  const written = decodeSafetensors(toHuggingFace(snapshot, model)).tensors;
  const byName = new Map(written.map((tensor) => [tensor.name, tensor]));
  expect([...byName.keys()].toSorted()).toEqual(entries.map(({ name }) => name).toSorted());
  for (const { name, shape, data } of entries) {
    expect(byName.get(name)!.shape).toEqual(shape);
    expect(Buffer.compare(byName.get(name)!.data, data)).toBe(0);
  }
});

test("BF16 is widened, and adapters begin anew beside what a file has", async () => {
  const [form, layer] = files["Llama"]!;
  const plain = modelOf(form);
  const all = new Map<string, Float32Array>();
  const entries = [...shapesOf(layer)].map(([name, shape]) => {
    const halves = toBf16(random(shape.reduce((a, b) => a * b, 1)));
    all.set(name, new Float32Array(Uint32Array.from(halves, (half) => half * 65_536).buffer));
    return { name, dtype: "BF16", shape, data: new Uint8Array(halves.buffer) } as const;
  });
  const snapshot = fromHuggingFace([encodeSafetensors(entries)], plain);
  for (const { name, data } of decodeSafetensors(toHuggingFace(snapshot, plain)).tensors) {
    expect(new Float32Array(data.slice().buffer)).toEqual(all.get(name));
  }
  const adapted = smallRun({}, { ...form, adapter: { rank: 2, targets: ["query"] } });
  await withRuntime(adapted, async (runtime) => {
    await runtime.restore(fromHuggingFace([encodeSafetensors(entries)], adapted.model));
    await trainSteps(runtime, 0, 1);
    // What is trained is beside it.
    const after = toHuggingFace(await takeSnapshot(runtime), adapted.model);
    expect(Buffer.compare(after, toHuggingFace(snapshot, plain))).toBe(0);
  });
});

test("files that do not fit are refused in one line", () => {
  const model = modelOf(llama);
  const [, layer] = files["Llama"]!;
  const file = (change: (name: string) => Partial<{ dtype: "F16"; shape: number[] }>): Uint8Array =>
    encodeSafetensors(
      [...shapesOf(layer)].map(([name, shape]) => {
        const made = { name, dtype: "F32", shape, ...change(name) } as const;
        const count = made.shape.reduce((a, b) => a * b, 1);
        return { ...made, data: new Uint8Array(count * (made.dtype === "F32" ? 4 : 2)) };
      }),
    );
  const key = "model.layers.2.self_attn.k_proj.weight";
  const read = (bytes: Uint8Array): unknown => fromHuggingFace([bytes], model);
  expect(() => read(file((name) => (name === key ? { shape: [32, 16] } : {})))).toThrow(
    `${key} is F32 [32,16] in the files, but must be F32 or BF16 [16,32]`,
  );
  expect(() => read(file((name) => (name === key ? { dtype: "F16" } : {})))).toThrow("is F16");
  expect(() => read(encodeSafetensors([]))).toThrow(
    "the files lack model.embed_tokens.weight; are they of another model?",
  );
  const other = modelOf(gpt);
  expect(() => fromHuggingFace([], other)).toThrow(
    "which has position learned; use wholeModel and its names",
  );
});
