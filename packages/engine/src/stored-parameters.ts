/** Parameters and optimizer state as checkpoint files, and back. */
import { type TensorEntry, decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import type { Snapshot } from "@trireme/runtime";
import type { StoredParameter } from "./protocol.ts";

/** The weights alone, in the names and shapes of Hugging Face's GPT-2. */
const modelFile = "model.safetensors";
const optimizerFile = "optimizer.safetensors";
const moments = { firstMoment: "first_moment", secondMoment: "second_moment" } as const;

/** The files of a checkpoint after `step` updates; tensors in the order of their names. */
export function snapshotOf(parameters: readonly StoredParameter[], step: number): Snapshot {
  const sorted = parameters.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const metadata = { format: "pt", step: String(step) };
  const model = sorted.map((p) => entry(p.name, p.dims, p.value));
  const state = sorted.flatMap((p) => [
    entry(`${moments.firstMoment}.${p.name}`, p.dims, p.firstMoment),
    entry(`${moments.secondMoment}.${p.name}`, p.dims, p.secondMoment),
  ]);
  return {
    step,
    files: [
      { name: modelFile, bytes: encodeSafetensors(model, metadata) },
      { name: optimizerFile, bytes: encodeSafetensors(state, metadata) },
    ],
  };
}

/** The parameters in a checkpoint's files. Throws `CHECKPOINT` naming a file or tensor that is missing. */
export function parametersOf(snapshot: Snapshot): StoredParameter[] {
  const read = (name: string): Map<string, TensorEntry> => {
    const file = snapshot.files.find((f) => f.name === name);
    if (file === undefined) throw missing(`the file ${name}`);
    return new Map(decodeSafetensors(file.bytes).tensors.map((tensor) => [tensor.name, tensor]));
  };
  const [model, state] = [read(modelFile), read(optimizerFile)];
  return Array.from(model.values(), ({ name, shape, data }) => {
    const moment = (kind: string): Float32Array => {
      const found = state.get(`${kind}.${name}`);
      if (found === undefined) throw missing(`${kind}.${name} in ${optimizerFile}`);
      return floats(found.data);
    };
    return {
      name,
      dims: shape,
      value: floats(data),
      firstMoment: moment(moments.firstMoment),
      secondMoment: moment(moments.secondMoment),
    };
  });
}

function missing(what: string): TriremeError {
  return new TriremeError("CHECKPOINT", `the checkpoint lacks ${what}`);
}

function entry(name: string, shape: readonly number[], values: Float32Array): TensorEntry {
  const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return { name, dtype: "F32", shape, data };
}

/** Copies, because a file's bytes need not lie on a multiple of four. */
function floats(data: Uint8Array): Float32Array {
  return new Float32Array(data.slice().buffer);
}
