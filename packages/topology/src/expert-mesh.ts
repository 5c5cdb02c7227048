/**
 * Expert parallelism folded into the dense axes: the ranks of tensor, context and data parallelism
 * are laid out anew as expert-tensor, expert and expert-data parallelism, while the other axes
 * (pipeline) stay (MoE parallel folding: Liu et al., arXiv 2504.14960). Experts' gradients are
 * summed over the expert-data groups.
 */
import { TriremeError, nearestDivisor } from "@trireme/core";
import { type Mesh, axisOf, coordinate, defineMesh, groupOf, rankAt } from "./mesh.ts";

export interface ExpertMesh {
  /** The dense layers' mesh. */
  readonly dense: Mesh;
  /** Axes of the dense mesh that are laid out anew, in its order. */
  readonly folded: readonly string[];
  /** Axes "etp", "ep" and "edp" over the product of the folded axes. */
  readonly experts: Mesh;
}

export interface ExpertFold {
  readonly ep: number;
  /** Tensor parallelism inside an expert; 1 when left out. */
  readonly etp?: number;
  /** Axes to fold; those called tp, cp and dp when left out. */
  readonly over?: readonly string[];
}

/**
 * Folds expert parallelism into a dense mesh; what is left over is expert-data parallelism.
 * @throws TriremeError "MESH" when etp x ep does not divide the product of the folded axes.
 */
export function foldExperts(dense: Mesh, fold: ExpertFold): ExpertMesh {
  const { ep, etp = 1, over = ["tp", "cp", "dp"].filter((n) => hasAxis(dense, n)) } = fold;
  for (const name of over) axisOf(dense, name);
  const axes = dense.axes.filter((a) => over.includes(a.name));
  const ranks = axes.reduce((product, a) => product * a.size, 1);
  const edp = ranks / (etp * ep);
  if (!Number.isInteger(edp)) {
    throw new TriremeError(
      "MESH",
      `etp(${etp}) x ep(${ep}) does not divide ${axes.map((a) => `${a.name}(${a.size})`).join(" x ")} = ${ranks}; the nearest ep is ${nearestDivisor(ranks / etp, ep)}`,
    );
  }
  const experts = defineMesh([
    { name: "etp", size: etp },
    { name: "ep", size: ep },
    { name: "edp", size: edp },
  ]);
  return { dense, folded: axes.map((a) => a.name), experts };
}

/**
 * Where a rank stands among the experts: etp, ep and edp.
 * @throws TriremeError "MESH" when the rank is not in the mesh.
 */
export function expertCoordinate(mesh: ExpertMesh, rank: number): number[] {
  return coordinate(mesh.experts, foldedIndex(mesh, rank));
}

/**
 * The expert group of a rank along some of the axes etp, ep and edp: ranks with the same place on
 * the others and on the dense axes that are not folded, ascending. "edp" is the group that sums an
 * expert's gradients, "ep" the one that exchanges tokens.
 * @throws TriremeError "MESH" on an unknown axis or rank.
 */
export function expertGroupOf(
  mesh: ExpertMesh,
  rank: number,
  axes: string | readonly string[],
): number[] {
  const at = coordinate(mesh.dense, rank);
  // Folded places and ranks grow together, so the group stays ascending.
  return groupOf(mesh.experts, foldedIndex(mesh, rank), axes).map((index) => {
    let rest = index;
    const member = mesh.dense.axes.map(({ name, size }, i) => {
      if (!mesh.folded.includes(name)) return at[i]!;
      const c = rest % size;
      rest = (rest - c) / size;
      return c;
    });
    return rankAt(mesh.dense, member);
  });
}

/** Number of a rank among those that share its place on the axes that are not folded. */
function foldedIndex(mesh: ExpertMesh, rank: number): number {
  const at = coordinate(mesh.dense, rank);
  let index = 0;
  let stride = 1;
  for (const [i, { name, size }] of mesh.dense.axes.entries()) {
    if (!mesh.folded.includes(name)) continue;
    index += at[i]! * stride;
    stride *= size;
  }
  return index;
}

function hasAxis(mesh: Mesh, name: string): boolean {
  return mesh.axes.some((a) => a.name === name);
}
