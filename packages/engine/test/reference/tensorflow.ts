/**
 * The same model in TensorFlow.js with its WebAssembly backend, one thread in Node. That backend has no
 * gradient of an embedding look-up (`UnsortedSegmentSum` is not registered), so both tables are
 * multiplied by one-hot rows instead, which is what its users do.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { decodeSafetensors } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import type { ResolvedRun } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import { nanoGptBatch, rateOf, samples, sequence } from "./nano-gpt.ts";
import { peerDirectory } from "./peer-directory.mjs";

interface Tensor {
  dispose(): void;
  reshape(dims: readonly number[]): Tensor;
  transpose(order?: readonly number[]): Tensor;
  add(x: Tensor | number): Tensor;
  sub(x: Tensor | number): Tensor;
  mul(x: Tensor | number): Tensor;
  div(x: Tensor | number): Tensor;
  square(): Tensor;
  rsqrt(): Tensor;
  tanh(): Tensor;
  softmax(): Tensor;
  mean(axis?: number, keep?: boolean): Tensor;
  slice(begin: readonly number[], size: readonly number[]): Tensor;
  dataSync(): Float32Array;
}

/** The part of TensorFlow.js that the model uses. */
export interface TensorFlow {
  setBackend(name: string): Promise<boolean>;
  ready(): Promise<void>;
  tensor(values: ArrayLike<number>, dims: readonly number[], type?: "int32"): Tensor;
  variable(x: Tensor, trainable: boolean, name: string): Tensor;
  randomNormal(dims: readonly number[]): Tensor;
  oneHot(x: Tensor, depth: number): Tensor;
  matMul(x: Tensor, y: Tensor, turnX?: boolean, turnY?: boolean): Tensor;
  tidy<T>(what: () => T): T;
  readonly losses: { softmaxCrossEntropy(labels: Tensor, logits: Tensor): Tensor };
  readonly train: {
    adam(rate: number, beta1: number, beta2: number, epsilon: number): Optimizer;
  };
}

interface Optimizer {
  learningRate: number;
  minimize(loss: () => Tensor, returnCost: true): Tensor;
}

/** TensorFlow.js as `pnpm --filter @trireme/engine run peers` installs it; throws MODULE_NOT_FOUND without. */
export async function loadTensorFlow(): Promise<TensorFlow> {
  const require = createRequire(join(peerDirectory, "package.json"));
  const load = async (name: string): Promise<unknown> =>
    import(pathToFileURL(require.resolve(name)).href);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a CommonJS module under `default`
  const { default: tf } = (await load("@tensorflow/tfjs")) as { default: TensorFlow };
  await load("@tensorflow/tfjs-backend-wasm");
  if (!(await tf.setBackend("wasm"))) throw new Error("TensorFlow.js has no WebAssembly backend");
  await tf.ready();
  return tf;
}

/** What a training by TensorFlow.js gave. */
export interface TensorFlowTraining {
  readonly losses: readonly number[];
  /** Of each step, user and system time of the process. */
  readonly seconds: readonly number[];
}

/** Trains the first `steps` steps of a run from these weights, by Adam without weight decay or clipping. */
export function trainByTensorFlow(
  tf: TensorFlow,
  run: ResolvedRun,
  first: Snapshot,
  steps: number,
): TensorFlowTraining {
  const { optimizer } = run;
  const loss = lossOf(tf, run, first);
  const adam = tf.train.adam(0, optimizer.beta1, optimizer.beta2, optimizer.epsilon);
  const losses: number[] = [];
  const seconds: number[] = [];
  for (let step = 0; step < steps; step++) {
    const { tokens } = nanoGptBatch(step);
    const begin = process.cpuUsage();
    adam.learningRate = rateOf(run, step);
    const cost = adam.minimize(() => loss(tokens), true);
    losses.push(cost.dataSync()[0]!);
    cost.dispose();
    const { user, system } = process.cpuUsage(begin);
    seconds.push((user + system) / 1e6);
  }
  return { losses, seconds };
}

/** The mean loss of a batch as a function of its tokens. */
function lossOf(tf: TensorFlow, run: ResolvedRun, first: Snapshot): (tokens: Int32Array) => Tensor {
  const { heads, hidden, layers, vocab, normEpsilon } = run.model;
  const rows = samples * sequence;
  const width = hidden / heads;
  const weights = new Map(
    decodeSafetensors(wholeModel(first)).tensors.map(({ name, shape, data }) => {
      const values = new Float32Array(Uint8Array.from(data).buffer);
      return [name, tf.variable(tf.tensor(values, shape), true, name)];
    }),
  );
  const get = (name: string): Tensor => weights.get(name)!;
  const future = Float32Array.from({ length: sequence ** 2 }, (_, i) =>
    i % sequence > Math.floor(i / sequence) ? -1e9 : 0,
  );
  const mask = tf.tensor(future, [1, sequence, sequence]);
  const places = tf.tensor(
    Int32Array.from({ length: rows }, (_, i) => i % sequence),
    [rows],
    "int32",
  );

  const product = (x: Tensor, name: string): Tensor =>
    tf.matMul(x, get(`${name}.weight`)).add(get(`${name}.bias`));
  const norm = (x: Tensor, name: string): Tensor => {
    const centred = x.sub(x.mean(-1, true));
    const scale = centred.square().mean(-1, true).add(normEpsilon).rsqrt();
    return centred
      .mul(scale)
      .mul(get(`${name}.weight`))
      .add(get(`${name}.bias`));
  };
  const gelu = (x: Tensor): Tensor => {
    const inner = x.add(x.square().mul(x).mul(0.044715)).mul(Math.sqrt(2 / Math.PI));
    return x.mul(0.5).mul(inner.tanh().add(1));
  };
  const attention = (x: Tensor, name: string): Tensor => {
    const qkv = product(x, `${name}.c_attn`).reshape([samples, sequence, 3, heads, width]);
    const [q, k, v] = [0, 1, 2].map((part) =>
      qkv
        .slice([0, 0, part, 0, 0], [samples, sequence, 1, heads, width])
        .reshape([samples, sequence, heads, width])
        .transpose([0, 2, 1, 3])
        .reshape([samples * heads, sequence, width]),
    ) as [Tensor, Tensor, Tensor];
    const scores = tf
      .matMul(q, k, false, true)
      .mul(1 / Math.sqrt(width))
      .add(mask);
    const mixed = tf
      .matMul(scores.softmax(), v)
      .reshape([samples, heads, sequence, width])
      .transpose([0, 2, 1, 3])
      .reshape([rows, hidden]);
    return product(mixed, `${name}.c_proj`);
  };

  return (tokens) =>
    tf.tidy(() => {
      const part = (shift: number): Tensor => {
        const ids = Int32Array.from({ length: rows }, (_, i) => {
          return tokens[Math.floor(i / sequence) * (sequence + 1) + (i % sequence) + shift]!;
        });
        return tf.oneHot(tf.tensor(ids, [rows], "int32"), vocab).mul(1);
      };
      const positions = tf.matMul(tf.oneHot(places, run.model.context).mul(1), get("wpe.weight"));
      let x = tf.matMul(part(0), get("wte.weight")).add(positions);
      for (let i = 0; i < layers; i++) {
        x = x.add(attention(norm(x, `h.${i}.ln_1`), `h.${i}.attn`));
        const inner = gelu(product(norm(x, `h.${i}.ln_2`), `h.${i}.mlp.c_fc`));
        x = x.add(product(inner, `h.${i}.mlp.c_proj`));
      }
      const logits = tf.matMul(norm(x, "ln_f"), get("wte.weight"), false, true);
      return tf.losses.softmaxCrossEntropy(part(1), logits);
    });
}
