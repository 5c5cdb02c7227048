/** Weights in the files of Hugging Face transformers, and from them. */
import { type TensorEntry, decodeSafetensors, encodeSafetensors } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import type { Snapshot } from "@trireme/runtime";
import { type Model, definePlan, stages } from "@trireme/workload";
import { floatsOf, isFloats } from "./floats-of.ts";
import { type NamedPart, checkNames, namedParts } from "./hugging-face-names.ts";
import type { ParameterSpec } from "../parameters/parameter.ts";
import { stageParameters } from "../parameters/parameter-specs.ts";
import { wholeModel } from "./stored-state.ts";
import { elements } from "../memory/tensor.ts";

/**
 * The weights of a snapshot as one safetensors file of `model`'s form in Hugging Face transformers,
 * in float32; adapters are left out. Throws `CHECKPOINT` for a model of another form than Llama's, and
 * for weights in 4 or 8 bits.
 */
export function toHuggingFace(snapshot: Snapshot, model: Model): Uint8Array<ArrayBuffer> {
  const whole = new Map(
    decodeSafetensors(wholeModel(snapshot)).tensors.map((tensor) => [tensor.name, tensor]),
  );
  const entries = weightsOf(model).flatMap(({ name, dims }) => {
    const found = whole.get(name);
    if (found === undefined || !isFloats(found.dtype)) {
      const is = found === undefined ? "not in the snapshot" : `kept in ${found.dtype}`;
      throw new TriremeError("CHECKPOINT", `${name} is ${is}; it must be there in F32 or BF16`);
    }
    const values = floatsOf(found.dtype, found.data);
    return namedParts(model, name).map((part): TensorEntry => {
      const box = boxOf(dims, part);
      const out = new Float32Array(elements(box.shape));
      box.each((inWhole, inPart) => {
        out[inPart] = values[inWhole]!;
      });
      const data = new Uint8Array(out.buffer);
      return { name: part.name, dtype: "F32", shape: box.shape, data };
    });
  });
  return encodeSafetensors(entries, { format: "pt" });
}

/**
 * The state of a run that begins with the weights in safetensors files of Hugging Face transformers,
 * one or many, in float32 or BF16: its optimizer and its adapters begin anew. Tensors that `model` does
 * not have are left alone. Throws `CHECKPOINT` naming one that is missing or of another type or shape.
 */
export function fromHuggingFace(files: readonly Uint8Array[], model: Model): Snapshot {
  const specs = weightsOf(model);
  const found = new Map(
    files.flatMap((bytes) =>
      decodeSafetensors(bytes).tensors.map((tensor) => [tensor.name, tensor]),
    ),
  );
  const entries = specs.map((spec): TensorEntry => {
    const values = new Float32Array(elements(spec.dims));
    for (const part of namedParts(model, spec.name)) readPart(values, spec, part, found);
    const data = new Uint8Array(values.buffer);
    return { name: spec.name, dtype: "F32", shape: spec.dims, data };
  });
  return {
    step: 0,
    files: [{ name: "model.safetensors", bytes: encodeSafetensors(entries, { format: "pt" }) }],
  };
}

/** Every tensor of the model itself. */
function weightsOf(model: Model): readonly ParameterSpec[] {
  checkNames(model);
  const { adapter: _, ...plain } = model;
  const [stage] = stages(plain, definePlan(plain, { globalBatch: 1 }));
  return stageParameters(plain, stage!);
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
  if (shape.join() !== box.shape.join() || !isFloats(dtype)) {
    throw new TriremeError(
      "CHECKPOINT",
      `${part.name} is ${dtype} [${shape.join()}] in the files, but must be F32 or BF16 [${box.shape.join()}]`,
    );
  }
  const values = floatsOf(dtype, data);
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
