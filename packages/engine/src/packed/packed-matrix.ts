/**
 * A frozen matrix in 4 or 8 bits as tensors of a checkpoint, under the names of bitsandbytes where it has
 * them: the matrix lies as [outputs, inputs], so that blocks run along the inputs of one output; in BF16 it
 * lies as in float32. The whole matrix is packed alike whatever part of it a rank holds.
 */
import { toBf16 } from "@trireme/collectives";
import { TriremeError } from "@trireme/core";
import type { Adapter } from "@trireme/workload";
import type { ParameterSpec } from "../parameters/parameter.ts";
import { type Slice, partDims, runsOf } from "../memory/slice.ts";
import { elements } from "../memory/tensor.ts";
import { toInt8 } from "./int8.ts";
import { nf4Block, toNf4 } from "./nf4.ts";
import { packScales } from "./packed-scales.ts";

/** How a frozen matrix is kept. */
export type PackedBase = "int8" | "nf4" | "bf16";

/** What a tensor of a packed matrix is. */
export type PackedRole = "codes" | "scales" | "groups" | "offset";

/** A tensor of a packed matrix. */
export interface PackedTensor {
  readonly role: PackedRole;
  readonly name: string;
  readonly dtype: "U8" | "I8" | "F32" | "BF16";
  /** Of the whole tensor. */
  readonly dims: readonly number[];
  readonly slice: Slice | undefined;
}

/** Of each role, whose name it has beyond the matrix's own. */
const suffixes: Readonly<Record<PackedRole, string>> = {
  codes: "",
  scales: ".absmax",
  groups: ".nested_absmax",
  offset: ".nested_offset",
};

/**
 * How a tensor is kept, where not in float32: a frozen matrix of a layer in `base`, and with `narrow` any
 * other in BF16; those of routers and the output head, which compute in float32, too.
 */
export function packedBase(
  { name, dims, frozen }: ParameterSpec,
  base: Adapter["base"],
  narrow: boolean,
): PackedBase | undefined {
  if (frozen !== true || dims.length !== 2) return undefined;
  const ofLayer = name.startsWith("h.") && !name.endsWith(".router.weight");
  if (ofLayer && name.endsWith(".weight") && (base === "int8" || base === "nf4")) return base;
  return narrow ? "bf16" : undefined;
}

/** How the matrix lies, and the rank's slice of it: turned, [outputs, inputs], but for BF16. */
export function laidOut(
  spec: ParameterSpec,
  base: PackedBase,
): Pick<ParameterSpec, "dims" | "slice"> {
  const { dims, slice } = spec;
  if (base === "bf16") return { dims, slice };
  return { dims: dims.toReversed(), slice: slice && { ...slice, dim: 1 - slice.dim } };
}

/**
 * The tensors of a matrix [inputs, outputs].
 * @throws TriremeError "ENGINE_PLAN" where a rank's part does not consist of whole blocks of NF4.
 */
export function packedTensors(spec: ParameterSpec, base: PackedBase): PackedTensor[] {
  const { dims, slice } = laidOut(spec, base);
  const tensor = (
    role: PackedRole,
    dtype: PackedTensor["dtype"],
    of: readonly number[],
    part?: Slice,
  ): PackedTensor => ({ role, name: spec.name + suffixes[role], dtype, dims: of, slice: part });
  if (base === "bf16") return [tensor("codes", "BF16", dims, slice)];
  const [outputs, inputs] = [dims[0]!, dims[1]!];
  if (base === "int8") {
    const ofRows = slice?.dim === 0 ? slice : undefined;
    return [tensor("codes", "I8", dims, slice), tensor("scales", "F32", [outputs], ofRows)];
  }
  checkBlocks(spec, slice);
  const blocks = Math.ceil((outputs * inputs) / nf4Block);
  const rows = inputs % nf4Block === 0 ? [outputs, inputs / nf4Block] : [blocks];
  return [
    tensor("codes", "U8", [outputs, inputs / 2], narrowed(slice, 2)),
    tensor("scales", "U8", rows, narrowed(slice, nf4Block)),
    tensor("groups", "F32", [Math.ceil(blocks / 256)]),
    tensor("offset", "F32", [1]),
  ];
}

/** The slice where so many neighbours along the inputs are one. */
function narrowed(slice: Slice | undefined, by: number): Slice | undefined {
  if (slice === undefined || slice.dim === 0) return slice;
  const ranges = slice.ranges.map(({ start, count }) => ({ start: start / by, count: count / by }));
  return { ...slice, ranges };
}

function checkBlocks({ name, dims }: ParameterSpec, slice: Slice | undefined): void {
  const refuse = (reason: string): TriremeError =>
    new TriremeError(
      "ENGINE_PLAN",
      `adapter.base nf4: ${name} has ${reason}; use adapter.base int8`,
    );
  if (dims[0]! % 2 !== 0) throw refuse(`${dims[0]} inputs, and two share a byte`);
  if (slice === undefined) return;
  const runs = runsOf(dims.toReversed(), slice);
  const cut = runs.find(({ whole, length }) => whole % nf4Block !== 0 || length % nf4Block !== 0);
  if (cut === undefined) return;
  const [inputs, own] = [dims[0]!, partDims(dims.toReversed(), slice)[1]!];
  const which = own < inputs ? `${own} of ${inputs} inputs` : `${inputs} inputs`;
  throw refuse(`${which} on a rank, which are not whole blocks of ${nf4Block}`);
}

/** A whole matrix [inputs, outputs], packed: the bytes of each of its tensors. */
export function packMatrix(
  values: Float32Array,
  dims: readonly number[],
  base: PackedBase,
): ReadonlyMap<PackedRole, Uint8Array> {
  if (base === "bf16") return new Map([["codes", bytesOf(toBf16(values))]]);
  const [inputs, outputs] = [dims[0]!, dims[1]!];
  const rows = new Float32Array(elements(dims));
  for (let i = 0; i < inputs; i++) {
    for (let o = 0; o < outputs; o++) rows[o * inputs + i] = values[i * outputs + o]!;
  }
  if (base === "int8") {
    const { codes, scales } = toInt8(rows, outputs);
    return new Map([
      ["codes", bytesOf(codes)],
      ["scales", bytesOf(scales)],
    ]);
  }
  const { codes, scales } = toNf4(rows);
  const packed = packScales(scales);
  return new Map([
    ["codes", codes],
    ["scales", packed.codes],
    ["groups", bytesOf(packed.groups)],
    ["offset", bytesOf(Float32Array.of(packed.offset))],
  ]);
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
