/**
 * Proves a plan from its rows alone: follows every chunk through every step and shows that each
 * output chunk holds the contribution of each rank exactly once. Steps cannot deadlock when each
 * row is a legal transfer, since a rank posts all of a step before it waits: the earliest step that
 * is not over can always end. What remains to show is that no rank sends what it does not hold and
 * that no two rows write one chunk of one rank in a step, unless both add.
 */
import type { Bytes } from "@trireme/core";
import { type CollectivePlan, chunkBytes } from "./plan.ts";
import { Contributions } from "./contributions.ts";

/** The outcome of `verify`. */
export type Verification =
  | {
      readonly ok: true;
      readonly steps: number;
      /** Bytes that each rank, and after them each switch, sends and receives. */
      readonly sent: Float64Array;
      readonly received: Float64Array;
      /** Bytes over each ordered pair that talks, by `source * (ranks + switches) + target`. */
      readonly links: ReadonlyMap<number, Bytes>;
    }
  | { readonly ok: false; readonly reason: string };

/** Rank whose chunk this is where chunks have an owner. */
function ownerOf(plan: CollectivePlan, chunk: number): number {
  return Math.floor(chunk / (plan.chunks / plan.ranks));
}

/** Rank whose data (rank, chunk) holds at the start; -1 for none. */
function initial(plan: CollectivePlan, rank: number, chunk: number): number {
  const { operation, ranks, chunks, root } = plan;
  switch (operation) {
    case "all-reduce":
    case "reduce-scatter":
    case "reduce":
    case "barrier":
      return rank;
    case "all-gather":
    case "gather":
      return ownerOf(plan, chunk) === rank ? rank : -1;
    case "broadcast":
    case "scatter":
      return rank === root ? rank : -1;
    case "all-to-all":
      return Math.floor(chunk / (chunks / ranks)) === rank ? rank : -1;
  }
}

/** What (rank, chunk) must hold in the end: a rank, "all", or undefined where it does not matter. */
function wanted(plan: CollectivePlan, rank: number, chunk: number): number | "all" | undefined {
  const { operation, ranks, chunks, root } = plan;
  switch (operation) {
    case "all-reduce":
    case "barrier":
      return "all";
    case "reduce-scatter":
      return ownerOf(plan, chunk) === rank ? "all" : undefined;
    case "reduce":
      return rank === root ? "all" : undefined;
    case "all-gather":
      return ownerOf(plan, chunk);
    case "gather":
      return rank === root ? ownerOf(plan, chunk) : undefined;
    case "broadcast":
      return root;
    case "scatter":
      return ownerOf(plan, chunk) === rank ? root : undefined;
    case "all-to-all": {
      const block = chunks / ranks / ranks;
      return Math.floor(chunk / block) % ranks === rank
        ? Math.floor(chunk / (chunks / ranks))
        : undefined;
    }
  }
}

/** Largest (ranks + switches) x chunks that is followed: 12 bytes each. */
const mostCells = 2 ** 28;

/**
 * Verifies a plan; see the top of this file. `bytes` is the buffer of one rank, by default one per
 * chunk, and only scales what is reported. In a barrier a contribution may come twice. Time and
 * memory grow with the chunks sent and with ranks x chunks.
 */
export function verify(plan: CollectivePlan, bytes?: Bytes): Verification {
  const { ranks, switches, chunks, steps, starts, source, target, chunk, count, reduce } = plan;
  const { operation, sizes } = plan;
  const nodes = ranks + switches;
  const blocks =
    operation === "all-to-all" ? ranks * ranks : /gather|scatter/.test(operation) ? ranks : 1;
  if (chunks % blocks !== 0 || chunks < 1) {
    return {
      ok: false,
      reason: `${operation} of ${ranks} ranks has ${chunks} chunks; it must have a multiple of ${blocks}`,
    };
  }
  if (["broadcast", "scatter", "reduce", "gather"].includes(operation)) {
    if (!(plan.root >= 0 && plan.root < ranks)) {
      return {
        ok: false,
        reason: `${operation} from root ${plan.root}, must be in 0..${ranks - 1}`,
      };
    }
  }
  if (sizes !== undefined && sizes.length !== chunks) {
    return { ok: false, reason: `${sizes.length} sizes for ${chunks} chunks` };
  }
  if (nodes * chunks > mostCells) {
    return {
      ok: false,
      reason: `${nodes} ranks and switches x ${chunks} chunks is more than the ${mostCells} that can be followed`,
    };
  }
  const scale = bytes === undefined ? 1 : chunkBytes(plan, bytes);
  const weight = (first: number, k: number): Bytes => {
    if (sizes === undefined) return k * scale;
    let sum = 0;
    for (let c = first; c < first + k; c++) sum += sizes[c]!;
    return sum;
  };
  const held = new Contributions(ranks, nodes * chunks);
  for (let rank = 0; rank < ranks; rank++) {
    for (let c = 0; c < chunks; c++) {
      const contribution = initial(plan, rank, c);
      if (contribution >= 0) held.put(rank * chunks + c, contribution);
    }
  }
  const sent = new Float64Array(nodes);
  const received = new Float64Array(nodes);
  const links = new Map<number, number>();
  // Step + 1 in which a cell was last written, negative when it was added to.
  const written = new Int32Array(nodes * chunks);
  let starting = new Int32Array(64);
  let lengths = new Int32Array(64);
  for (let step = 0; step < steps; step++) {
    const [first, end] = [starts[step]!, starts[step + 1]!];
    let cells = 0;
    for (let row = first; row < end; row++) cells += count[row]!;
    if (cells > starting.length) {
      starting = new Int32Array(2 * cells);
      lengths = new Int32Array(2 * cells);
    }
    const fault = (row: number, what: string): Verification => ({
      ok: false,
      reason: `step ${step}: rank ${source[row]} sends chunk ${chunk[row]}${count[row] === 1 ? "" : `..${chunk[row]! + count[row]! - 1}`} to rank ${target[row]}: ${what}`,
    });
    // All reads of a step come before its writes.
    let at = 0;
    for (let row = first; row < end; row++) {
      const [from, to, c, k] = [source[row]!, target[row]!, chunk[row]!, count[row]!];
      if (!(from >= 0 && from < nodes && to >= 0 && to < nodes)) return fault(row, "no such rank");
      if (from === to) return fault(row, "a rank sends to itself");
      if (!(c >= 0 && k >= 1 && c + k <= chunks)) return fault(row, `chunks are 0..${chunks - 1}`);
      for (let i = 0; i < k; i++, at++) {
        const cell = from * chunks + c + i;
        starting[at] = held.startOf(cell);
        lengths[at] = held.lengthOf(cell);
        if (lengths[at] === 0) return fault(row, `it does not hold chunk ${c + i}`);
      }
      const moved = weight(c, k);
      sent[from]! += moved;
      received[to]! += moved;
      const link = from * nodes + to;
      links.set(link, (links.get(link) ?? 0) + moved);
    }
    at = 0;
    for (let row = first; row < end; row++) {
      const adds = reduce[row] === 1;
      for (let i = 0; i < count[row]!; i++, at++) {
        const cell = target[row]! * chunks + chunk[row]! + i;
        const before = written[cell]!;
        if (Math.abs(before) === step + 1 && !(adds && before < 0)) {
          return fault(row, `another transfer of the step writes chunk ${chunk[row]! + i} there`);
        }
        written[cell] = adds ? -(step + 1) : step + 1;
        if (!adds) {
          held.write(cell, starting[at]!, lengths[at]!);
          continue;
        }
        const twice = held.add(cell, starting[at]!, lengths[at]!, operation === "barrier");
        if (twice >= 0) {
          return fault(row, `chunk ${chunk[row]! + i} would hold rank ${twice} twice`);
        }
      }
    }
  }
  for (let rank = 0; rank < ranks; rank++) {
    for (let c = 0; c < chunks; c++) {
      const want = wanted(plan, rank, c);
      const cell = rank * chunks + c;
      if (want === undefined || sizes?.[c] === 0) continue;
      if (want === "all" ? held.full(cell) : held.only(cell, want)) continue;
      const has = held.members(cell);
      return {
        ok: false,
        reason: `in the end chunk ${c} of rank ${rank} holds ${has.length === 0 ? "nothing" : `the data of ranks ${has.join(", ")}`}, must hold ${want === "all" ? `that of all ${ranks}` : `that of rank ${want}`}`,
      };
    }
  }
  return { ok: true, steps, sent, received, links };
}
