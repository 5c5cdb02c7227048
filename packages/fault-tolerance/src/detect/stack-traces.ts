/**
 * Aggregation analysis (ByteRobust, section 5): processes that wait for others stand in the same
 * few stacks; what stands elsewhere holds the job up. The parallel group that the outliers share is
 * evicted whole: fast, and right even when the cause within it is not known.
 */
import { TriremeError } from "@trireme/core";
import { type Mesh, groupOf } from "@trireme/topology";

export interface StackTrace {
  readonly rank: number;
  /** The frames as text, outermost first; equal text is equal stack. */
  readonly stack: string;
}

export interface StackGroup {
  readonly stack: string;
  /** Ranks in the stack, ascending. */
  readonly ranks: readonly number[];
}

export interface StackGroups {
  /** By size, the largest first. */
  readonly groups: readonly StackGroup[];
  /** Ranks of the groups that are not healthy, ascending. */
  readonly outliers: readonly number[];
}

/**
 * Groups traces by their text. Groups of at least `healthy` (a half) of the largest group's size are
 * taken as healthy: pipeline stages wait in different places, but in groups of like size.
 * @throws TriremeError "STACKS" when `healthy` is not in (0, 1].
 */
export function aggregateStacks(traces: Iterable<StackTrace>, healthy = 0.5): StackGroups {
  if (!(healthy > 0 && healthy <= 1)) {
    throw new TriremeError("STACKS", `healthy = ${healthy} of the largest group is not in (0, 1]`);
  }
  const byStack = new Map<string, number[]>();
  for (const { rank, stack } of traces) {
    const known = byStack.get(stack);
    if (known) known.push(rank);
    else byStack.set(stack, [rank]);
  }
  const groups = [...byStack]
    .map(([stack, ranks]) => ({ stack, ranks: ranks.toSorted((a, b) => a - b) }))
    .toSorted((a, b) => b.ranks.length - a.ranks.length || a.ranks[0]! - b.ranks[0]!);
  const least = healthy * (groups[0]?.ranks.length ?? 0);
  const outliers = groups.filter((each) => each.ranks.length < least).flatMap((g) => g.ranks);
  return { groups, outliers: outliers.toSorted((a, b) => a - b) };
}

export interface SharedGroup {
  /** Axis or axes of the mesh that the group runs along; none for one rank alone. */
  readonly axes: readonly string[];
  /** Ranks of the group, ascending. */
  readonly ranks: readonly number[];
}

/**
 * The smallest parallel group that holds all outliers: a rank, a group along one axis, or along two
 * and more. Of groups of a size the one along the axes named first is taken. Undefined without outliers.
 * @param axes Axes to look along; all of the mesh by default.
 */
export function sharedGroup(
  mesh: Mesh,
  outliers: readonly number[],
  axes: readonly string[] = mesh.axes.map((axis) => axis.name),
): SharedGroup | undefined {
  const [first] = outliers;
  if (first === undefined) return undefined;
  let best: SharedGroup | undefined;
  // Every set of axes: a mesh has a handful.
  for (let set = 0; set < 2 ** axes.length; set++) {
    const along = axes.filter((_, i) => (set >> i) & 1);
    const ranks = groupOf(mesh, first, along);
    if (best !== undefined && ranks.length >= best.ranks.length) continue;
    const members = new Set(ranks);
    if (outliers.every((rank) => members.has(rank))) best = { axes: along, ranks };
  }
  return best;
}

export interface OverEviction extends SharedGroup {
  /** Hosts of the group, ascending: all of them are evicted. */
  readonly hosts: readonly number[];
  /** Hosts of the outliers themselves: the others are evicted without evidence against them. */
  readonly suspects: readonly number[];
}

/**
 * The hosts to evict when stacks stand out: those of the shared group. It is the stated
 * over-eviction: about 8 hosts of which 6 or 7 are good, in ByteRobust's job of 9,600 GPUs.
 */
export function overEviction(
  mesh: Mesh,
  outliers: readonly number[],
  hostOfRank: (rank: number) => number,
): OverEviction | undefined {
  const group = sharedGroup(mesh, outliers);
  if (group === undefined) return undefined;
  const hostsOf = (ranks: readonly number[]): number[] =>
    [...new Set(ranks.map((rank) => hostOfRank(rank)))].toSorted((a, b) => a - b);
  return { ...group, hosts: hostsOf(group.ranks), suspects: hostsOf(outliers) };
}
