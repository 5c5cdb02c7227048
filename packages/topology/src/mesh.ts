/**
 * A mesh lays named axes over ranks 0 … n-1. The first axis varies fastest, so `tp-dp-pp` puts the
 * ranks of one tensor-parallel group side by side (Megatron-LM's order). Groups are computed from
 * the coordinates and never stored: memory does not grow with ranks.
 */
import { TriremeError, nearestName } from "@trireme/core";

export interface Axis {
  readonly name: string;
  readonly size: number;
}

export interface Mesh {
  /** The first axis varies fastest. */
  readonly axes: readonly Axis[];
  /** Product of the sizes. */
  readonly ranks: number;
}

/**
 * A mesh over the product of its axes; no axes is one rank.
 * @throws TriremeError "MESH" on an unnamed or repeated axis, a size that is not a positive integer,
 * or more than 2^53 ranks.
 */
export function defineMesh(axes: readonly Axis[]): Mesh {
  let ranks = 1;
  const seen = new Set<string>();
  for (const { name, size } of axes) {
    if (name === "") throw new TriremeError("MESH", "an axis of the mesh has no name");
    if (seen.has(name)) throw new TriremeError("MESH", `axis "${name}" stands twice in the mesh`);
    seen.add(name);
    if (!Number.isSafeInteger(size) || size < 1) {
      throw new TriremeError(
        "MESH",
        `axis "${name}" has size ${size}; a size is an integer from 1 up, such as 1`,
      );
    }
    ranks *= size;
  }
  if (!Number.isSafeInteger(ranks)) {
    throw new TriremeError(
      "MESH",
      `${axes.map((a) => `${a.name}(${a.size})`).join(" x ")} = ${ranks} ranks; at most 2^53 - 1 can be counted`,
    );
  }
  return { axes: axes.map(({ name, size }) => ({ name, size })), ranks };
}

/**
 * Where a rank stands: one number per axis, in axis order.
 * @throws TriremeError "MESH" when the rank is not in the mesh.
 */
export function coordinate(mesh: Mesh, rank: number): number[] {
  checkRank(mesh, rank);
  let rest = rank;
  return mesh.axes.map(({ size }) => {
    const at = rest % size;
    rest = (rest - at) / size;
    return at;
  });
}

/**
 * The rank at a coordinate: the inverse of `coordinate`.
 * @throws TriremeError "MESH" when the coordinate has another length or lies outside an axis.
 */
export function rankAt(mesh: Mesh, at: readonly number[]): number {
  if (at.length !== mesh.axes.length) {
    throw new TriremeError(
      "MESH",
      `coordinate [${at.join(", ")}] has ${at.length} numbers, but the mesh has ${mesh.axes.length} axes`,
    );
  }
  let rank = 0;
  let stride = 1;
  for (const [i, { name, size }] of mesh.axes.entries()) {
    const c = at[i]!;
    if (!Number.isInteger(c) || c < 0 || c >= size) {
      throw new TriremeError("MESH", `coordinate ${c} on axis "${name}" is outside 0..${size - 1}`);
    }
    rank += c * stride;
    stride *= size;
  }
  return rank;
}

/**
 * The process group of a rank along one axis or several: all ranks that share every other
 * coordinate, ascending. Without axes it is the rank alone. Time and memory grow with the group.
 * @throws TriremeError "MESH" on an unknown axis (with the nearest one) or rank.
 */
export function groupOf(mesh: Mesh, rank: number, axes: string | readonly string[]): number[] {
  checkRank(mesh, rank);
  const wanted = typeof axes === "string" ? [axes] : axes;
  for (const name of wanted) axisOf(mesh, name);
  let base = 0;
  let stride = 1;
  let rest = rank;
  let members: number[] = [0];
  for (const { name, size } of mesh.axes) {
    const at = rest % size;
    rest = (rest - at) / size;
    if (wanted.includes(name)) {
      // Later axes have larger strides than all before together, so the order stays ascending.
      const inner = members;
      members = [];
      for (let i = 0; i < size; i++) for (const m of inner) members.push(m + i * stride);
    } else {
      base += at * stride;
    }
    stride *= size;
  }
  return members.map((m) => m + base);
}

/**
 * An axis of the mesh by name.
 * @throws TriremeError "MESH" with the nearest name.
 */
export function axisOf(mesh: Mesh, name: string): Axis {
  const found = mesh.axes.find((a) => a.name === name);
  if (found) return found;
  const names = mesh.axes.map((a) => a.name);
  const nearest = nearestName(name, names);
  const hint = nearest ? `did you mean "${nearest}"?` : `its axes are: ${names.join(", ")}`;
  throw new TriremeError("MESH", `the mesh has no axis "${name}"; ${hint}`);
}

function checkRank(mesh: Mesh, rank: number): void {
  if (!Number.isInteger(rank) || rank < 0 || rank >= mesh.ranks) {
    throw new TriremeError("MESH", `rank ${rank} is outside the mesh's 0..${mesh.ranks - 1}`);
  }
}
