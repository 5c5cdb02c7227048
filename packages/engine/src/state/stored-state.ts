/** A snapshot's tensors, whatever layout wrote it, where every rank can read them. */
import {
  type Dtype,
  type Region,
  type StoredTensor,
  type TensorEntry,
  decodeSafetensors,
  encodeSafetensors,
  indexFileName,
  parseCheckpointIndex,
} from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import type { Snapshot } from "@trireme/runtime";
import { isAdapter } from "../parameters/adapters.ts";
import { isFloats } from "./floats-of.ts";
import { isMaxima } from "../weights/delayed-scaling.ts";
import { isOptimizerState } from "../weights/pieces.ts";
import type { NeededTensor } from "./snapshot-files.ts";
import { wholeTensor } from "./whole-tensor.ts";

/** A box of a tensor and its bytes, row-major, in shared memory. */
interface StatePiece {
  readonly region: Region;
  readonly bytes: Uint8Array;
}

/** A tensor in pieces that together are all of it. */
export interface StateTensor {
  readonly name: string;
  readonly dtype: Dtype;
  readonly dims: readonly number[];
  readonly pieces: readonly StatePiece[];
}

/**
 * Reads a snapshot: of any layout by its index, or of whole tensors in any safetensors files where it
 * has none. Throws `CHECKPOINT` naming what is missing or not as the index says.
 */
export function readState({ files }: Snapshot): ReadonlyMap<string, StateTensor> {
  const index = files.find(({ name }) => name === indexFileName);
  const decoded = new Map(
    files
      .filter(({ name }) => name.endsWith(".safetensors"))
      .map(({ name, bytes }) => [name, tensorsOf(inSharedMemory(bytes))]),
  );
  if (index === undefined && decoded.size === 0) throw missing("any safetensors file");
  const stored = index === undefined ? wholeTensors(decoded) : parseCheckpointIndex(index.bytes);
  const tensors = stored.map(({ name, dtype, shape, pieces }): StateTensor => {
    const found = pieces.map(({ file, key, region }): StatePiece => {
      const entry = decoded.get(file)?.get(key);
      if (entry === undefined) throw missing(`${key} in ${file}`);
      if (entry.shape.join() === region.shape.join() && entry.dtype === dtype)
        return { region, bytes: entry.data };
      const is = `${entry.dtype} [${entry.shape.join()}]`;
      const message = `${key} in ${file} is ${is}; its index says ${dtype} [${region.shape.join()}]`;
      throw new TriremeError("CHECKPOINT", message);
    });
    return { name, dtype, dims: shape, pieces: found };
  });
  return new Map(tensors.map((tensor) => [tensor.name, tensor]));
}

/** What a snapshot may lack altogether, as one of another kind of run does: it begins anew with the run. */
const beginnings: readonly (readonly [what: string, isOne: (name: string) => boolean])[] = [
  ["adapters", isAdapter],
  ["maxima of FP8 operands", isMaxima],
  ["moments", (name): boolean => isOptimizerState(name) && !isAdapter(name)],
];

/**
 * Compares a snapshot with what a run needs; `begins`: it is of step 0, and the run has taken no step.
 * @throws TriremeError `CHECKPOINT` naming a tensor that is missing or of another type or shape, or what
 * would have to begin anew in the middle of a run.
 */
export function checkState(
  state: ReadonlyMap<string, StateTensor>,
  needed: readonly NeededTensor[],
  begins: boolean,
): void {
  const names = [...state.keys()];
  const absent = beginnings.filter(([, isOne]) => !names.some((name) => isOne(name)));
  for (const { name, dtype, dims, unpacked } of needed) {
    if (unpacked !== undefined && isSource(state.get(unpacked.name), unpacked.dims)) continue;
    const found = state.get(name);
    if (found === undefined) {
      const kind = absent.find(([, isOne]) => isOne(name));
      if (kind === undefined) throw missing(`${name}; is it of another model?`);
      if (begins) continue;
      const rule = "restore it as of step 0, before the first step";
      throw missing(`${kind[0]}, which begin anew with a run alone; ${rule}`);
    }
    // What is in BF16 is written out exactly.
    const isHeld = found.dtype === dtype || (found.dtype === "BF16" && dtype === "F32");
    if (found.dims.join() === dims.join() && isHeld) continue;
    throw new TriremeError(
      "CHECKPOINT",
      `${name} is ${found.dtype} [${found.dims.join()}] in the checkpoint, but ${dtype} [${dims.join()}] in the model`,
    );
  }
}

/** Whether a tensor is the matrix in full that one in fewer bits is made from. */
function isSource(found: StateTensor | undefined, dims: readonly number[]): boolean {
  return isFloats(found?.dtype) && found?.dims.join() === dims.join();
}

/**
 * The weights of a snapshot of the embedded runtime as one safetensors file of whole tensors, in the
 * names and shapes of Hugging Face's GPT-2: `model.safetensors`. What is kept in fewer bits stays so. The
 * snapshot's bytes are all there (`Snapshot.taken`).
 */
export function wholeModel(snapshot: Snapshot): Uint8Array<ArrayBuffer> {
  const entries = [...readState(snapshot).values()]
    .filter(({ name }) => !isOptimizerState(name))
    .map((tensor): TensorEntry => {
      const { name, dtype, dims: shape } = tensor;
      return { name, dtype, shape, data: wholeTensor(tensor) };
    });
  return encodeSafetensors(entries, { format: "pt" });
}

function tensorsOf(bytes: Uint8Array): ReadonlyMap<string, TensorEntry> {
  return new Map(decodeSafetensors(bytes).tensors.map((tensor) => [tensor.name, tensor]));
}

/** What files without an index say of themselves. */
function wholeTensors(
  files: ReadonlyMap<string, ReadonlyMap<string, TensorEntry>>,
): readonly StoredTensor[] {
  return [...files].flatMap(([file, tensors]) =>
    [...tensors.values()].map(({ name, dtype, shape }) => {
      const region = { start: shape.map(() => 0), shape };
      return { name, dtype, shape, pieces: [{ file, key: name, region }] };
    }),
  );
}

function missing(what: string): TriremeError {
  return new TriremeError("CHECKPOINT", `the checkpoint lacks ${what}`);
}

function inSharedMemory(bytes: Uint8Array): Uint8Array {
  if (bytes.buffer instanceof SharedArrayBuffer) return bytes;
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.byteLength));
  shared.set(bytes);
  return shared;
}
