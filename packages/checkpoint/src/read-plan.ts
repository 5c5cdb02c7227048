/**
 * How the ranks of a layout fill what they hold from a checkpoint of any other: what is held is the
 * intersection with what is stored, by global name and region. Of the ranks of a data-parallel group
 * that hold the same, one reads and sends it to the others (MegaScale, NSDI 2024), so
 * that storage is read once a group and not once a rank.
 */
import { TriremeError, nearestName } from "@trireme/core";
import type { StoredPiece, StoredTensor } from "./checkpoint-index.ts";
import { dtypeBits } from "./dtype.ts";
import type { GlobalTensor } from "./global-tensor.ts";
import { type ParallelLayout, layoutRanks } from "./parallel-layout.ts";
import { type Holding, holders, placeTensors } from "./placement.ts";
import { RegionIndex } from "./region-index.ts";
import { type Region, elements, intersectRegions } from "./region.ts";
import { leastLoaded } from "./save-plan.ts";

/** A box to copy from a stored piece into a holding. */
export interface RegionCopy {
  readonly source: StoredPiece;
  /** In the global tensor. */
  readonly region: Region;
  /** Where it starts in the local tensor of the holding. */
  readonly local: readonly number[];
}

/** What one reader puts together; where the holding has no one member, it then goes to all of them. */
export interface Assembly {
  readonly holding: Holding;
  readonly reader: number;
  readonly copies: readonly RegionCopy[];
}

/** Who reads what. */
export interface ReadPlan {
  readonly assemblies: readonly Assembly[];
  /** Bytes that each rank reads from storage. */
  readonly bytes: Float64Array;
  /** Tensors of the checkpoint that the layout does not ask for. */
  readonly unused: readonly string[];
}

/**
 * The plan that fills `tensors` under `layout` from the checkpoint. Throws `CHECKPOINT` for a tensor
 * that is missing or has another shape or element type, `LAYOUT` where tensors and layout disagree.
 */
export function readPlan(
  stored: readonly StoredTensor[],
  tensors: readonly GlobalTensor[],
  layout: ParallelLayout,
): ReadPlan {
  const byName = new Map(stored.map((tensor) => [tensor.name, tensor]));
  const sources = tensors.map((tensor) => source(tensor, byName));
  const bytes = new Float64Array(layoutRanks(layout));
  const assemblies: Assembly[] = [];
  for (const holding of placeTensors(tensors, layout)) {
    if (holding.pieces.length === 0) continue;
    const tensor = tensors[holding.tensor]!;
    const copies = copiesOf(holding, sources[holding.tensor]!);
    let found = 0;
    for (const { region } of copies) found += elements(region.shape);
    const wanted = holding.to - holding.from;
    if (found !== wanted) {
      throw new TriremeError(
        "CHECKPOINT",
        `the checkpoint has ${found} of the ${wanted} elements wanted of tensor "${tensor.name}"; its regions must cover each once`,
      );
    }
    const reader = leastLoaded(holders(holding), bytes);
    bytes[reader]! += (wanted * dtypeBits(tensor.dtype)) / 8;
    assemblies.push({ holding, reader, copies });
  }
  const asked = new Set(tensors.map(({ name }) => name));
  const unused = stored.map(({ name }) => name).filter((name) => !asked.has(name));
  return { assemblies, bytes, unused };
}

/** A stored tensor, made ready for search when it is first asked for. */
class Source {
  readonly pieces: readonly StoredPiece[];
  #index: RegionIndex | undefined;

  constructor(pieces: readonly StoredPiece[]) {
    this.pieces = pieces;
  }

  get index(): RegionIndex {
    return (this.#index ??= new RegionIndex(this.pieces.map(({ region }) => region)));
  }
}

function source(tensor: GlobalTensor, byName: ReadonlyMap<string, StoredTensor>): Source {
  const { name, dtype, shape } = tensor;
  const found = byName.get(name);
  if (found === undefined) {
    const near = nearestName(name, byName.keys());
    throw new TriremeError(
      "CHECKPOINT",
      `the checkpoint has no tensor "${name}" among ${byName.size}` +
        (near === undefined ? "" : `; did you mean "${near}"?`),
    );
  }
  const sameShape =
    found.shape.length === shape.length && found.shape.every((size, dim) => size === shape[dim]);
  if (!sameShape || found.dtype !== dtype) {
    throw new TriremeError(
      "CHECKPOINT",
      `tensor "${name}" is ${found.dtype} [${found.shape.join(", ")}] in the checkpoint; ${dtype} [${shape.join(", ")}] is asked for`,
    );
  }
  return new Source(found.pieces);
}

function copiesOf(holding: Holding, { pieces, index }: Source): readonly RegionCopy[] {
  const copies: RegionCopy[] = [];
  for (const { region: wanted, local } of holding.pieces) {
    index.overlapping(wanted, (i) => {
      const piece = pieces[i]!;
      const region = intersectRegions(piece.region, wanted);
      if (region === undefined) return;
      const at = region.start.map((x, dim) => x - wanted.start[dim]! + local[dim]!);
      copies.push({ source: piece, region, local: at });
    });
  }
  return copies;
}
