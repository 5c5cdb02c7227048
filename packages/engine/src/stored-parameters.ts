/** Parameters and optimizer state as checkpoint files, and back. */
import { type TensorEntry, decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import type { Snapshot } from "@trireme/runtime";
import type { HeldTensor, TensorKind, WholeTensor } from "./pieces.ts";

/** The weights alone, in the names and shapes of Hugging Face's GPT-2. */
const modelFile = "model.safetensors";
const optimizerFile = "optimizer.safetensors";

/** The kinds of tensors in a checkpoint. */
export const storedKinds: readonly TensorKind[] = ["value", "firstMoment", "secondMoment"];

/** The files of a checkpoint after `step` updates; tensors in the order of their names. */
export function snapshotOf(tensors: readonly WholeTensor[], step: number): Snapshot {
  const metadata = { format: "pt", step: String(step) };
  const sorted = tensors.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const model = sorted.filter(({ kind }) => kind === "value");
  const state = sorted.filter(({ kind }) => kind !== "value");
  const entries = (of: readonly WholeTensor[]): TensorEntry[] =>
    of.map(({ name, kind, dims, values }) => entry(storedName(name, kind), dims, values));
  return {
    step,
    files: [
      { name: modelFile, bytes: encodeSafetensors(entries(model), metadata) },
      { name: optimizerFile, bytes: encodeSafetensors(entries(state), metadata) },
    ],
  };
}

/**
 * The tensors in a checkpoint's files that a model needs, in shared memory. Throws `CHECKPOINT`
 * naming a file or tensor that is missing or of another shape.
 */
export function tensorsOf(snapshot: Snapshot, needed: Iterable<HeldTensor>): WholeTensor[] {
  const read = (name: string): Map<string, TensorEntry> => {
    const file = snapshot.files.find((f) => f.name === name);
    if (file === undefined) throw missing(`the file ${name}`);
    return new Map(decodeSafetensors(file.bytes).tensors.map((tensor) => [tensor.name, tensor]));
  };
  const [model, state] = [read(modelFile), read(optimizerFile)];
  return Array.from(needed, ({ name, dims, isState }) =>
    (isState ? storedKinds.slice(0, 1) : storedKinds).map((kind) => {
      const file = kind === "value" ? model : state;
      const found = file.get(storedName(name, kind));
      if (found === undefined) throw missing(`${storedName(name, kind)}; is it of another model?`);
      if (found.shape.join() !== dims.join()) {
        throw new TriremeError(
          "CHECKPOINT",
          `${name} is [${found.shape.join()}] in the checkpoint, but [${dims.join()}] in the model`,
        );
      }
      return { name, kind, dims, values: floats(found.data) };
    }),
  ).flat();
}

function storedName(name: string, kind: TensorKind): string {
  if (kind === "firstMoment") return `first_moment.${name}`;
  if (kind === "secondMoment") return `second_moment.${name}`;
  return name;
}

function missing(what: string): TriremeError {
  return new TriremeError("CHECKPOINT", `the checkpoint lacks ${what}`);
}

function entry(name: string, shape: readonly number[], values: Float32Array): TensorEntry {
  const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return { name, dtype: "F32", shape, data };
}

/** Copies to where every thread can read it; a file's bytes need not lie on a multiple of four. */
function floats(data: Uint8Array): Float32Array {
  const shared = new SharedArrayBuffer(data.byteLength);
  new Uint8Array(shared).set(data);
  return new Float32Array(shared);
}
