/**
 * What one coordinate of tensor and expert parallelism holds of a tensor: boxes of the global tensor,
 * joined along the cut dim to one local tensor.
 */
import { TriremeError } from "@trireme/core";
import type { GlobalTensor } from "./global-tensor.ts";
import type { Region } from "./region.ts";

/** A box of a global tensor inside a local one. */
interface LocalPart {
  readonly region: Region;
  /** Where it starts in the local tensor. */
  readonly local: readonly number[];
  /** Whether this coordinate is the one, of those that hold the same box, that saves it. */
  readonly main: boolean;
}

/** A local tensor. */
export interface LocalTensor {
  readonly shape: readonly number[];
  readonly parts: readonly LocalPart[];
}

/** Where in its axes a rank is. */
export interface SplitCoordinate {
  readonly tensor: number;
  readonly tp: number;
  readonly expert: number;
  readonly ep: number;
}

/**
 * The local tensor; undefined where the coordinate has nothing to do with it (another's expert).
 * `turn` spreads the saving of boxes that several coordinates hold. Sizes that do not divide are cut
 * as evenly as they can be. Throws `LAYOUT` where fewer units than ranks do not divide them.
 */
export function splitTensor(
  tensor: GlobalTensor,
  at: SplitCoordinate,
  turn: number,
): LocalTensor | undefined {
  const { shape, tensorParallel, experts } = tensor;
  const start = shape.map(() => 0);
  const size = [...shape];
  if (experts !== undefined && "index" in experts) {
    const owner = Math.floor(((experts.index + 1) * at.ep - 1) / experts.count);
    if (owner !== at.expert) return undefined;
  } else if (experts !== undefined) {
    const [from, to] = share(shape[experts.dim]!, at.expert, at.ep);
    start[experts.dim] = from;
    size[experts.dim] = to - from;
  }
  if (tensorParallel === undefined) {
    const main = turn % at.tp === at.tensor;
    const local = shape.map(() => 0);
    return { shape: size, parts: [{ region: { start, shape: size }, local, main }] };
  }
  const { dim, parts = [{ size: shape[dim]! }] } = tensorParallel;
  const cut: LocalPart[] = [];
  let before = 0;
  let held = 0;
  for (const part of parts) {
    const { from, to, main } = cutPart(tensor, part, at, turn);
    const region = { start: [...start], shape: [...size] };
    region.start[dim] = before + from;
    region.shape[dim] = to - from;
    const local = shape.map(() => 0);
    local[dim] = held;
    cut.push({ region, local, main });
    before += part.size;
    held += to - from;
  }
  size[dim] = held;
  return { shape: size, parts: cut };
}

function cutPart(
  tensor: GlobalTensor,
  { size, units = size }: { readonly size: number; readonly units?: number },
  { tensor: rank, tp }: SplitCoordinate,
  turn: number,
): { readonly from: number; readonly to: number; readonly main: boolean } {
  if (size === 0) return { from: 0, to: 0, main: false };
  const unit = size / units;
  if (units >= tp) {
    const [from, to] = share(units, rank, tp);
    return { from: from * unit, to: to * unit, main: true };
  }
  if (tp % units !== 0) {
    throw new TriremeError(
      "LAYOUT",
      `tensor "${tensor.name}" has ${units} units to share among ${tp} ranks; fewer units than ranks must divide them`,
    );
  }
  const copies = tp / units;
  const held = Math.floor(rank / copies);
  return { from: held * unit, to: (held + 1) * unit, main: rank % copies === turn % copies };
}

/** Part `index` of `count` cut into `ways` as evenly as can be; `splitTensor` inverts this for experts. */
function share(count: number, index: number, ways: number): readonly [number, number] {
  return [Math.floor((count * index) / ways), Math.floor((count * (index + 1)) / ways)];
}
