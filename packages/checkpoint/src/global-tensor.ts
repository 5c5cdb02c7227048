/**
 * A tensor of the whole model under its global name, with what a layout may do to it: which stages
 * hold it, along which dim tensor parallelism cuts it, and where its experts are. Names and shapes do
 * not depend on the layout, which is what makes a checkpoint of one readable by any other.
 */
import { TriremeError } from "@trireme/core";
import { type Dtype, dtypeBits, isDtype, tensorBytes } from "./dtype.ts";

/** Part of a fused dim, cut by itself: queries, keys and values, or gate and up. */
export interface TensorPart {
  /** Its share of the dim. */
  readonly size: number;
  /**
   * Pieces it may be cut into (heads); default `size`. Fewer than ranks are held by several ranks
   * each, as key and value heads are, where the ranks are a multiple of them.
   */
  readonly units?: number;
}

/** A tensor of a model or of its optimizer, whole. */
export interface GlobalTensor {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  /**
   * A layer's number; "first" or "last" for the first or last stage; "ends" for both (tied
   * embeddings); "every" for what each pipeline rank holds.
   */
  readonly place: number | "first" | "last" | "ends" | "every";
  /** The dim that tensor parallelism cuts, and its parts where several are fused; default none. */
  readonly tensorParallel?: { readonly dim: number; readonly parts?: readonly TensorPart[] };
  /** The dim that counts experts, or which of how many experts the tensor belongs to. */
  readonly experts?: { readonly dim: number } | { readonly index: number; readonly count: number };
  /** "weight" (default), or the name of an optimizer state, which ZeRO splits from stage 1 on. */
  readonly state?: string;
}

/** Options of `optimizerState`. */
export interface OptimizerStateOptions {
  /** Default Adam's with master weights: "master", "exp_avg", "exp_avg_sq". */
  readonly states?: readonly string[];
  /** Default "F32". */
  readonly dtype?: Dtype;
}

/**
 * The optimizer's tensors of the given weights, laid out like them, named
 * `optimizer.<state>.<weight's name>`.
 */
export function optimizerState(
  weights: readonly GlobalTensor[],
  options: OptimizerStateOptions = {},
): readonly GlobalTensor[] {
  const { states = ["master", "exp_avg", "exp_avg_sq"], dtype = "F32" } = options;
  return states.flatMap((state) =>
    weights.map((weight) => ({
      ...weight,
      name: `optimizer.${state}.${weight.name}`,
      dtype,
      state,
    })),
  );
}

/** Refuses tensors that contradict themselves; `LAYOUT` with the tensor's name and the rule. */
export function checkTensors(tensors: readonly GlobalTensor[], layers: number): void {
  const names = new Set<string>();
  for (const tensor of tensors) {
    const { name, dtype, shape, place, tensorParallel, experts, state } = tensor;
    const refuse = (reason: string): TriremeError =>
      new TriremeError("LAYOUT", `tensor "${name}" of [${shape.join(", ")}] ${reason}`);
    if (names.has(name)) throw refuse("comes twice; global names differ");
    names.add(name);
    if (!isDtype(dtype)) throw refuse(`has unknown dtype ${String(dtype)}`);
    tensorBytes(name, dtype, shape);
    if (dtypeBits(dtype) % 8 !== 0) {
      throw refuse(`has dtype ${dtype}; a layout cuts at elements, which must be whole bytes`);
    }
    if (typeof place === "number" && !(Number.isSafeInteger(place) && place >= 0 && place < layers))
      throw refuse(`is of layer ${place}; the layout has ${layers}, counted from 0`);
    if (state === "") throw refuse('has state ""; leave it out for weights');
    const dims = [
      tensorParallel?.dim,
      experts !== undefined && "dim" in experts ? experts.dim : undefined,
    ].filter((dim) => dim !== undefined);
    for (const dim of dims) {
      if (!Number.isSafeInteger(dim) || dim < 0 || dim >= shape.length)
        throw refuse(`is to be cut along dim ${dim}; it has ${shape.length} dims`);
    }
    if (new Set(dims).size !== dims.length)
      throw refuse(`is to be cut along dim ${dims[0]} by tensor and by expert parallelism`);
    if (experts !== undefined && "index" in experts) {
      const { index, count } = experts;
      if (!(Number.isSafeInteger(index) && index >= 0 && index < count))
        throw refuse(`is of expert ${index} of ${count}; they count from 0`);
    }
    const parts = tensorParallel?.parts;
    if (tensorParallel !== undefined && parts !== undefined) {
      const bad = parts.find(
        ({ size, units = size }) => size < 0 || units < 1 || size % units !== 0,
      );
      if (bad !== undefined)
        throw refuse(
          `has a part of ${bad.size} in ${bad.units ?? bad.size} units; they must divide`,
        );
      const sum = parts.reduce((total, { size }) => total + size, 0);
      if (sum !== shape[tensorParallel.dim])
        throw refuse(`has parts of ${sum} together along dim ${tensorParallel.dim}`);
    }
  }
}

/** Whether a layout's ZeRO stage splits the tensor over its data-parallel group; a scalar never is. */
export function isSplitByZero(tensor: GlobalTensor, zero: number): boolean {
  if (tensor.shape.length === 0) return false;
  return zero === 3 || (zero >= 1 && (tensor.state ?? "weight") !== "weight");
}
