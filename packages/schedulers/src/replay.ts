/**
 * Replays a schedule under given costs: when each action starts and ends if every rank takes its
 * actions in order, each as soon as its inputs are there. Linear in the number of actions.
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import { type CostTable, type ExecutionCosts, constantCost, execute } from "./execute.ts";
import { describeDeadlock } from "./deadlock.ts";
import { isLowered } from "./messages.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";

/** A cost that is the same everywhere, or depends on the stage, or also on the microbatch. */
export type Cost = Seconds | ((stage: number, microbatch: number) => Seconds);

/** Where communication holds up the rank: not at all, or sends and receives until they are over. */
export type Communication = "decoupled" | "coupled";

/** What a replay needs to know about time, and optionally memory. */
export interface ReplayCosts {
  readonly forward: Cost;
  /** B; the sum of the two below when left out. */
  readonly backward?: Cost;
  /** I; needed where the schedule splits the backward. */
  readonly inputGradient?: Cost;
  /** W; needed where the schedule splits the backward. */
  readonly weightGradient?: Cost;
  /** Transfer between neighbour stages on different ranks; 0 when left out. */
  readonly pointToPoint?: Seconds | ((fromStage: number, toStage: number) => Seconds);
  /** Time of an overlapped F and B; the sum of the two when left out. */
  readonly overlapped?: Seconds | ((forwardStage: number, backwardStage: number) => Seconds);
  /**
   * `decoupled` (the default; Jiang et al., MegaScale, NSDI 2024, §3.2): sends leave in the
   * background and an action waits only for its own input. `coupled`: a rank stands still until its
   * send has arrived and its receive is there, as with batched blocking exchanges. Warm-up is what
   * a rank does before its first backward, cool-down what follows its last forward. Only sends and
   * receives of a lowered schedule can hold up a rank.
   */
  readonly communication?:
    | Communication
    | {
        readonly warmUp: Communication;
        readonly steady: Communication;
        readonly coolDown: Communication;
      };
  /** UNSHARD and REDUCE_GRAD of a stage, on a lane beside the computation; 0 when left out. */
  readonly unshard?: Seconds | ((stage: number) => Seconds);
  readonly reduceGradient?: Seconds | ((stage: number) => Seconds);
  /** Bytes that one microbatch keeps on a stage from its F to its B or W. */
  readonly activation?: Bytes | ((stage: number) => Bytes);
}

/** Times of one step. Columns run parallel to the schedule's. */
export interface Replay {
  readonly makespan: Seconds;
  /** Per rank: time in F, I, W and B. */
  readonly busy: Float64Array;
  /** Per rank: makespan − busy. */
  readonly idle: Float64Array;
  /** Per rank: idle time between its first and its last compute action. */
  readonly idleInside: Float64Array;
  /** Per rank: most activations held at once, in microbatches of one stage, from F to B or W. */
  readonly peak: Int32Array;
  /** Per rank: most bytes of activations held at once; zeros without `activation`. */
  readonly peakBytes: Float64Array;
  /** Start of each action; of a send or receive: when it is posted. */
  readonly starts: Float64Array;
  /** End of each action; of a send or receive: when the data is there. */
  readonly ends: Float64Array;
}

/**
 * Replays a schedule.
 * @throws TriremeError `COST` for a cost that is missing, negative or not finite, `DEADLOCK` with
 * the cycle when the schedule cannot run to its end.
 */
export function replay(s: Schedule, costs: ReplayCosts): Replay {
  const run = execute(s, executionCosts(s, costs));
  if (!run.complete) {
    throw new TriremeError("DEADLOCK", `${s.name}: ${describeDeadlock(s, run.positions)}`);
  }
  const { ranks, offsets, kind, stage } = s;
  const { starts, ends } = run;
  endReceives(s, starts, ends);
  const perStage = stageColumn(s, "activation", costs.activation);
  const busy = new Float64Array(ranks);
  const idle = new Float64Array(ranks);
  const idleInside = new Float64Array(ranks);
  const peak = new Int32Array(ranks);
  const peakBytes = new Float64Array(ranks);
  let makespan = 0;
  for (let r = 0; r < ranks; r++) {
    let [held, heldBytes, most, mostBytes, time, first, last] = [0, 0, 0, 0, 0, Infinity, 0];
    for (let i = offsets[r]!; i < offsets[r + 1]!; i++) {
      const k = kind[i]!;
      if (k > kindCode.B) {
        // Nothing waits for the reduction of gradients, but the step ends with it.
        if (k <= kindCode.REDUCE_GRAD && ends[i]! > makespan) makespan = ends[i]!;
        continue;
      }
      if (starts[i]! < first) first = starts[i]!;
      if (ends[i]! > last) last = ends[i]!;
      // Both halves of an overlapped pair span the pair.
      if (s.overlap[i] !== 2) time += ends[i]! - starts[i]!;
      if (s.forwardOnly) continue;
      if (k === kindCode.F) {
        held++;
        heldBytes += perStage[stage[i]!]!;
        if (held > most) most = held;
        if (heldBytes > mostBytes) mostBytes = heldBytes;
      } else if (k !== kindCode.I) {
        held--;
        heldBytes -= perStage[stage[i]!]!;
      }
    }
    busy[r] = time;
    idleInside[r] = Math.max(0, last - Math.min(first, last) - time);
    peak[r] = most;
    peakBytes[r] = mostBytes;
    if (last > makespan) makespan = last;
  }
  for (let r = 0; r < ranks; r++) idle[r] = Math.max(0, makespan - busy[r]!);
  return { makespan, busy, idle, idleInside, peak, peakBytes, starts, ends };
}

/** A posted receive ends when its data is there, which is when its send ends. */
function endReceives(s: Schedule, starts: Float64Array, ends: Float64Array): void {
  if (!isLowered(s)) return;
  const arrival = new Float64Array(2 * s.stages * s.microbatches);
  const place = (i: number, step: number): number =>
    2 * ((s.stage[i]! + step) * s.microbatches + s.microbatch[i]!);
  for (let i = 0; i < s.kind.length; i++) {
    if (s.kind[i] === kindCode.SEND_F) arrival[place(i, 1)] = ends[i]!;
    else if (s.kind[i] === kindCode.SEND_B) arrival[place(i, -1) + 1] = ends[i]!;
  }
  for (let i = 0; i < s.kind.length; i++) {
    if (s.kind[i] === kindCode.RECV_F) ends[i] = Math.max(starts[i]!, arrival[place(i, 0)]!);
    else if (s.kind[i] === kindCode.RECV_B)
      ends[i] = Math.max(starts[i]!, arrival[place(i, 0) + 1]!);
  }
}

/** Costs as tables, checked. */
export function executionCosts(s: Schedule, costs: ReplayCosts): ExecutionCosts {
  const has = (code: number): boolean => s.kind.includes(code);
  const table = (name: string, cost: Cost | undefined, kind: number): CostTable => {
    if (cost !== undefined) return costTable(s, name, cost);
    if (has(kind)) {
      throw new TriremeError(
        "COST",
        `${s.name} splits the backward into I and W; give the cost ${name} beside forward`,
      );
    }
    return constantCost(0);
  };
  const inputGradient = table("inputGradient", costs.inputGradient, kindCode.I);
  const weightGradient = table("weightGradient", costs.weightGradient, kindCode.W);
  let backward: CostTable;
  if (costs.backward !== undefined) {
    backward = costTable(s, "backward", costs.backward);
  } else if (costs.inputGradient !== undefined && costs.weightGradient !== undefined) {
    backward = costTable(s, "backward", sum(costs.inputGradient, costs.weightGradient));
  } else if (has(kindCode.B)) {
    throw new TriremeError(
      "COST",
      `${s.name} has B: give backward, or inputGradient and weightGradient`,
    );
  } else {
    backward = constantCost(0);
  }
  const { overlapped } = costs;
  const chain = stagesPerDirection(s);
  const up = new Float64Array(s.stages);
  const down = new Float64Array(s.stages);
  const { pointToPoint = 0 } = costs;
  for (let from = 0; from < s.stages; from++) {
    for (const to of [from + 1, from - 1]) {
      const low = Math.min(from, to);
      if (low < 0 || to >= s.stages || low % chain === chain - 1) continue;
      if (s.stageRank[from] === s.stageRank[to]) continue;
      const time = typeof pointToPoint === "number" ? pointToPoint : pointToPoint(from, to);
      (to > from ? up : down)[from] = checkedCost("pointToPoint", time, from);
    }
  }
  return {
    forward: costTable(s, "forward", costs.forward),
    backward,
    inputGradient,
    weightGradient,
    overlapped:
      typeof overlapped === "number"
        ? () => checkedCost("overlapped", overlapped, 0)
        : overlapped === undefined
          ? undefined
          : (f, b) => checkedCost("overlapped", overlapped(f, b), f),
    up,
    down,
    blocking: blockingActions(s, costs.communication ?? "decoupled"),
    unshard: stageColumn(s, "unshard", costs.unshard),
    reduceGradient: stageColumn(s, "reduceGradient", costs.reduceGradient),
  };
}

function sum(a: Cost, b: Cost): Cost {
  if (typeof a === "number" && typeof b === "number") return a + b;
  return (stage, m) =>
    (typeof a === "number" ? a : a(stage, m)) + (typeof b === "number" ? b : b(stage, m));
}

function costTable(s: Schedule, name: string, cost: Cost): CostTable {
  if (typeof cost === "number") return constantCost(checkedCost(name, cost, 0));
  const values = new Float64Array(s.stages * s.microbatches);
  for (let st = 0, i = 0; st < s.stages; st++) {
    for (let m = 0; m < s.microbatches; m++, i++) values[i] = checkedCost(name, cost(st, m), st);
  }
  return { values, perStage: s.microbatches, perMicrobatch: 1 };
}

function checkedCost(name: string, value: number, stage: number): number {
  if (value >= 0 && value < Infinity) return value;
  throw new TriremeError(
    "COST",
    `${name} of stage ${stage} is ${value}; a cost is finite and at least 0`,
  );
}

function stageColumn(
  s: Schedule,
  name: string,
  cost: number | ((stage: number) => number) = 0,
): Float64Array {
  return Float64Array.from({ length: s.stages }, (_, st) =>
    checkedCost(name, typeof cost === "number" ? cost : cost(st), st),
  );
}

/** Marks the sends and receives that hold up their rank. */
function blockingActions(
  s: Schedule,
  communication: NonNullable<ReplayCosts["communication"]>,
): Uint8Array | undefined {
  const phases =
    typeof communication === "string"
      ? { warmUp: communication, steady: communication, coolDown: communication }
      : communication;
  const { kind, offsets } = s;
  const blocking = new Uint8Array(kind.length);
  let some = false;
  for (let r = 0; r < s.ranks; r++) {
    const [from, to] = [offsets[r]!, offsets[r + 1]!];
    let firstBackward = from;
    while (firstBackward < to && !isBackward(kind[firstBackward]!)) firstBackward++;
    let lastForward = to - 1;
    while (lastForward >= from && kind[lastForward] !== kindCode.F) lastForward--;
    for (let i = from; i < to; i++) {
      if (kind[i]! < kindCode.SEND_F) continue;
      const phase = i < firstBackward ? "warmUp" : i > lastForward ? "coolDown" : "steady";
      if (phases[phase] === "coupled") {
        blocking[i] = 1;
        some = true;
      }
    }
  }
  return some ? blocking : undefined;
}

function isBackward(kind: number): boolean {
  return kind === kindCode.B || kind === kindCode.I;
}
