/**
 * Symmetry folding: ranks that must behave alike are simulated once. Two ranks behave alike when they
 * run the same program with the same durations, and along every axis their groups, and in their
 * pipelines their neighbours, consist of ranks that behave alike. That is the coarsest stable
 * partition, found by refining an initial one until no class splits (colour refinement; Paige and
 * Tarjan, SIAM J. Comput. 16, 1987): a class of ranks then sees, event by event, what each of its
 * ranks would. Anything uneven (a straggler, a route) splits the classes that it reaches, no other.
 */
import { type GroupAxis, type RankLayout, groupAxes } from "./rank-layout.ts";

/** The ranks that are simulated, in order of their pipeline coordinate, and whom they stand for. */
export interface SimulatedRanks {
  readonly count: number;
  /** Rank of the plan that each is: the lowest of its class. */
  readonly rankOf: Int32Array;
  /** By rank of the plan: the simulated rank that stands for it. */
  readonly standIn: Int32Array;
  /** How many ranks of the plan each stands for. */
  readonly weight: Int32Array;
  readonly stageRank: Int32Array;
  /** Simulated ranks of pipeline coordinate p are `first[p] .. first[p + 1] - 1`. */
  readonly first: Int32Array;
  /** By axis: groups of simulated ranks, those of one pipeline coordinate in a row. */
  readonly groups: Readonly<Record<GroupAxis, FoldedGroups>>;
  /** The simulated rank with pipeline coordinate `p` in the pipeline of another. */
  along(simulated: number, p: number): number;
}

/** Folded groups of one axis. */
export interface FoldedGroups {
  /** Group of each simulated rank. */
  readonly of: Int32Array;
  /** Simulated ranks of each group, ascending: one of each class in it. */
  readonly members: readonly Int32Array[];
  /** First group of each pipeline coordinate; one entry more than coordinates. */
  readonly first: Int32Array;
}

/** Every rank simulated. */
export function unfolded(layout: RankLayout): SimulatedRanks {
  return simulated(
    layout,
    Int32Array.from({ length: layout.ranks }, (_, rank) => rank),
  );
}

/**
 * The coarsest fold that is exact.
 * @param differs By rank: equal numbers where ranks of one pipeline coordinate compute and send alike.
 */
export function fold(layout: RankLayout, differs: ArrayLike<number>): SimulatedRanks {
  const { ranks, stageRank } = layout;
  let colours = named(ranks, (rank) => `${stageRank[rank]!} ${differs[rank]!}`);
  for (;;) {
    const present = colours.count;
    if (present === ranks) break;
    const seen: Int32Array[] = groupAxes.map((axis) => {
      const { of, members } = layout.groups[axis];
      const colour = named(members.length, (g) => distinct(members[g]!, colours.of));
      return Int32Array.from({ length: ranks }, (_, rank) => colour.of[of[rank]!]!);
    });
    const pipeline = named(ranks, (rank) => {
      let key = "";
      for (let p = 0; p < layout.pipeline; p++) key += `${colours.of[layout.along(rank, p)]!} `;
      return key;
    });
    const previous = colours;
    colours = named(ranks, (rank) => {
      let key = `${previous.of[rank]!} ${pipeline.of[rank]!}`;
      for (const colour of seen) key += ` ${colour[rank]!}`;
      return key;
    });
    if (colours.count === present) break;
  }
  return simulated(layout, colours.of);
}

/** Numbers for names, equal for equal ones. */
function named(
  count: number,
  name: (i: number) => string,
): { readonly of: Int32Array; readonly count: number } {
  const numbers = new Map<string, number>();
  const of = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const key = name(i);
    let number = numbers.get(key);
    if (number === undefined) numbers.set(key, (number = numbers.size));
    of[i] = number;
  }
  return { of, count: numbers.size };
}

/** The colours of a group's members, each once: how many have one does not matter, they come at once. */
function distinct(members: Int32Array, colours: Int32Array): string {
  const found = new Set<number>();
  for (const rank of members) found.add(colours[rank]!);
  return found.size === 1
    ? String(colours[members[0]!])
    : [...found].sort((a, b) => a - b).join(" ");
}

function simulated(layout: RankLayout, classes: Int32Array): SimulatedRanks {
  const lowest = new Map<number, number>();
  classes.forEach((one, rank) => {
    if (!lowest.has(one)) lowest.set(one, rank);
  });
  const { stageRank, pipeline } = layout;
  const rankOf = Int32Array.from(lowest.values()).sort(
    (a, b) => stageRank[a]! - stageRank[b]! || a - b,
  );
  const number = new Map<number, number>();
  rankOf.forEach((rank, i) => number.set(classes[rank]!, i));
  const standIn = Int32Array.from(classes, (one) => number.get(one)!);
  const weight = new Int32Array(rankOf.length);
  for (const one of standIn) weight[one]!++;
  const coordinates = Int32Array.from(rankOf, (rank) => stageRank[rank]!);
  const first = new Int32Array(pipeline + 1);
  for (const p of coordinates) first[p + 1]!++;
  for (let p = 0; p < pipeline; p++) first[p + 1]! += first[p]!;
  const groups = (axis: GroupAxis): FoldedGroups =>
    foldedGroups(layout, axis, { rankOf, standIn, coordinates });
  return {
    count: rankOf.length,
    rankOf,
    standIn,
    weight,
    stageRank: coordinates,
    first,
    groups: {
      tp: groups("tp"),
      cp: groups("cp"),
      dp: groups("dp"),
      ep: groups("ep"),
      etp: groups("etp"),
      edp: groups("edp"),
    },
    along: (one, p) => standIn[layout.along(rankOf[one]!, p)]!,
  };
}

function foldedGroups(
  layout: RankLayout,
  axis: GroupAxis,
  ranks: {
    readonly rankOf: Int32Array;
    readonly standIn: Int32Array;
    readonly coordinates: Int32Array;
  },
): FoldedGroups {
  const { of, members } = layout.groups[axis];
  const { rankOf, standIn, coordinates } = ranks;
  const folded: Int32Array[] = [];
  const own = new Int32Array(rankOf.length).fill(-1);
  const first = new Int32Array(layout.pipeline + 1);
  for (let one = 0; one < rankOf.length; one++) {
    first[coordinates[one]! + 1] = Math.max(first[coordinates[one]! + 1]!, folded.length);
    if (own[one]! >= 0) continue;
    const present = new Set<number>();
    for (const rank of members[of[rankOf[one]!]!]!) present.add(standIn[rank]!);
    const list = Int32Array.from(present).sort();
    for (const member of list) own[member] = folded.length;
    folded.push(list);
    first[coordinates[one]! + 1] = folded.length;
  }
  for (let p = 0; p < layout.pipeline; p++) first[p + 1] = Math.max(first[p + 1]!, first[p]!);
  return { of: own, members: folded, first };
}
