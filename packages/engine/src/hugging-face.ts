/** Weights in the files of Hugging Face transformers, and from them. */
import { type TensorEntry, decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import { fromBf16 } from "@trireme/collectives";
import { TriremeError } from "@trireme/core";
import type { Snapshot } from "@trireme/runtime";
import { type Model, definePlan, stages } from "@trireme/workload";
import { type NamedPart, checkNames, namedParts } from "./hugging-face-names.ts";
import { initialize } from "./initial-values.ts";
import { isAdapter } from "./adapters.ts";
import type { ParameterSpec } from "./parameter.ts";
import { stageParameters } from "./parameter-specs.ts";
import { storedName } from "./pieces.ts";
import { wholeModel } from "./stored-state.ts";
import { elements } from "./tensor.ts";

/**
 * The weights of a snapshot as one safetensors file of `model`'s form in Hugging Face transformers,
 * in float32; adapters are left out. Throws `CHECKPOINT` for a model of another form than Llama's.
 */
export function toHuggingFace(snapshot: Snapshot, model: Model): Uint8Array<ArrayBuffer> {
  checkNames(model);
  const { tensors } = decodeSafetensors(wholeModel(snapshot));
  const entries = tensors.flatMap(({ name, shape, data }) => {
    if (isAdapter(name)) return [];
    const whole = new Float32Array(data.slice().buffer);
    return namedParts(model, name).map((part): TensorEntry => {
      const box = boxOf(shape, part);
      const values = new Float32Array(elements(box.shape));
      box.each((inWhole, inPart) => {
        values[inPart] = whole[inWhole]!;
      });
      const bytes = new Uint8Array(values.buffer);
      return { name: part.name, dtype: "F32", shape: box.shape, data: bytes };
    });
  });
  return encodeSafetensors(entries, { format: "pt" });
}

/** Options of `fromHuggingFace`. */
export interface FromHuggingFaceOptions {
  readonly model: Model;
  /** Of the first values of adapters, which the files do not have; default 0. */
  readonly seed?: number;
}

/**
 * The state of a run that begins with the weights in safetensors files of Hugging Face transformers,
 * one or many, in float32 or BF16; moments are zero. Tensors that `model` does not have are left
 * alone. Throws `CHECKPOINT` naming one that is missing or of another type or shape.
 */
export function fromHuggingFace(
  files: readonly Uint8Array[],
  { model, seed = 0 }: FromHuggingFaceOptions,
): Snapshot {
  checkNames(model);
  const found = new Map(
    files.flatMap((bytes) =>
      decodeSafetensors(bytes).tensors.map((tensor) => [tensor.name, tensor]),
    ),
  );
  const [stage] = stages(model, definePlan(model, { globalBatch: 1 }));
  const entries = stageParameters(model, stage!).flatMap((spec) => {
    const values = new Float32Array(elements(spec.dims));
    if (isAdapter(spec.name)) initialize(values, spec, seed);
    else for (const part of namedParts(model, spec.name)) readPart(values, spec, part, found);
    return stored(spec, values);
  });
  return {
    step: 0,
    files: [{ name: "model.safetensors", bytes: encodeSafetensors(entries, { format: "pt" }) }],
  };
}

/** Fills the part's place in a tensor of the engine from the files. */
function readPart(
  whole: Float32Array,
  { dims }: ParameterSpec,
  part: NamedPart,
  found: ReadonlyMap<string, TensorEntry>,
): void {
  const tensor = found.get(part.name);
  if (tensor === undefined) {
    throw new TriremeError("CHECKPOINT", `the files lack ${part.name}; are they of another model?`);
  }
  const { dtype, shape, data } = tensor;
  const box = boxOf(dims, part);
  if (shape.join() !== box.shape.join() || (dtype !== "F32" && dtype !== "BF16")) {
    throw new TriremeError(
      "CHECKPOINT",
      `${part.name} is ${dtype} [${shape.join()}] in the files, but must be F32 or BF16 [${box.shape.join()}]`,
    );
  }
  const { buffer } = data.slice();
  const values = dtype === "F32" ? new Float32Array(buffer) : fromBf16(new Uint16Array(buffer));
  box.each((inWhole, inPart) => {
    whole[inWhole] = values[inPart]!;
  });
}

/** The shape of a part in the files, and each element's place in the engine's tensor and in the part. */
interface PartBox {
  readonly shape: readonly number[];
  each(visit: (inWhole: number, inPart: number) => void): void;
}

function boxOf(dims: readonly number[], { columns, transposed }: NamedPart): PartBox {
  const stride = dims.at(-1)!;
  const rows = elements(dims) / stride;
  const { start, count } = columns ?? { start: 0, count: stride };
  return {
    shape: transposed ? [count, rows] : [...dims.slice(0, -1), count],
    each: (visit) => {
      for (let row = 0; row < rows; row++) {
        for (let col = 0; col < count; col++) {
          const inPart = transposed ? col * rows + row : row * count + col;
          visit(row * stride + start + col, inPart);
        }
      }
    },
  };
}

/** What a snapshot has of a tensor: its values and, where it is trained, moments of zeros. */
function stored({ name, dims, role, frozen }: ParameterSpec, values: Float32Array): TensorEntry[] {
  const trained = frozen !== true && role !== "state" && role !== "expert-state";
  const kinds = ["value", ...(trained ? (["firstMoment", "secondMoment"] as const) : [])] as const;
  return kinds.map((kind): TensorEntry => {
    const { buffer } = kind === "value" ? values : new Float32Array(values.length);
    return {
      name: storedName(name, kind),
      dtype: "F32",
      shape: dims,
      data: new Uint8Array(buffer),
    };
  });
}
