/**
 * Plays a text workload: each pipeline rank runs the lines of a microbatch forward, and backward in
 * reverse order, in a 1F1B schedule, and around them what is done once. Collectives of forward and input
 * gradient hold a rank up; those of weight gradients run behind and are waited for before the update, as
 * in data-parallel training. Ranks of a group do the same, and one stands for all; all stages have as
 * much to do.
 */
import type { Seconds } from "@trireme/core";
import { createSchedule, kindCode, lower } from "@trireme/schedulers";
import type { SpanKind, Timeline } from "@trireme/timeline";
import { type Cluster, linkBetween } from "@trireme/topology";
import { collectiveTime } from "@trireme/collectives";
import { play } from "../program/play.ts";
import { Program } from "../program/program.ts";
import { type TextStep, textMicrobatches } from "./text-microbatches.ts";
import type { TextLayer, TextPass, TextWorkload } from "./text-workload.ts";

/** What came of it. */
export interface PlayedText {
  readonly time: Seconds;
  /** Computations and collectives of one rank, over all microbatches, and the update. */
  readonly operations: number;
  readonly timeline: Timeline;
}

const kinds = {
  ALLREDUCE: "all-reduce",
  ALLGATHER: "all-gather",
  REDUCESCATTER: "reduce-scatter",
  ALLTOALL: "all-to-all",
} as const;

/**
 * Plays a workload on a cluster.
 * @throws TriremeError "DEVICES" when it is too small for all GPUs, "WORKLOAD" when its lines do not hold
 * the microbatches that its header names.
 */
export function playText(w: TextWorkload, cluster: Cluster): PlayedText {
  const step = textMicrobatches(w);
  const schedule = lower(createSchedule("1f1b", { ranks: w.pp, microbatches: w.microbatches }));
  const program = new Program(w.pp);
  const text = new TextProgram(program, w, step, cluster);
  const stride = w.allGpus / w.pp;
  const messages = new Map<string, number>();
  const message = (from: number, to: number, what: string): number => {
    const key = `${from} ${to} ${what}`;
    let id = messages.get(key);
    if (id === undefined) {
      const { bandwidth, latency } = linkBetween(cluster, from * stride, to * stride);
      const bytes = w.boundary;
      const label = (kind: "send" | "receive"): number =>
        program.label({ kind, lane: "inter", action: `${kind} ${what}`, bytes });
      const ends = { send: label("send"), receive: label("receive") };
      id = program.message({ from, to, duration: bytes / bandwidth, latency, ...ends });
      messages.set(key, id);
    }
    return id;
  };
  for (let rank = 0; rank < w.pp; rank++) {
    text.begin(rank);
    for (let i = schedule.offsets[rank]!; i < schedule.offsets[rank + 1]!; i++) {
      const microbatch = schedule.microbatch[i]!;
      switch (schedule.kind[i]!) {
        case kindCode.F:
          text.forward(rank, microbatch);
          break;
        case kindCode.B:
          text.backward(rank, microbatch);
          break;
        case kindCode.SEND_F:
          program.send(message(rank, rank + 1, `F${microbatch}`), false);
          break;
        case kindCode.RECV_F:
          program.receive(message(rank - 1, rank, `F${microbatch}`));
          break;
        case kindCode.SEND_B:
          program.send(message(rank, rank - 1, `B${microbatch}`), false);
          break;
        default:
          program.receive(message(rank + 1, rank, `B${microbatch}`));
      }
    }
    text.update(rank);
  }
  const timeline = play(program);
  const time = timeline.end.reduce((a, b) => Math.max(a, b), 0);
  return { time, operations: text.operations / w.pp, timeline };
}

class TextProgram {
  readonly #program: Program;
  readonly #w: TextWorkload;
  readonly #step: TextStep;
  readonly #cluster: Cluster;
  readonly #groups: readonly number[];
  readonly #pending: number[][];
  operations = 0;

  constructor(program: Program, w: TextWorkload, step: TextStep, cluster: Cluster) {
    this.#program = program;
    this.#w = w;
    this.#step = step;
    this.#cluster = cluster;
    this.#groups = Array.from({ length: w.pp }, (_, rank) => program.group([rank]));
    this.#pending = this.#groups.map(() => []);
  }

  /** What is done once before the first microbatch. */
  begin(rank: number): void {
    this.#forward(rank, -1, this.#step.before);
  }

  forward(rank: number, microbatch: number): void {
    this.#forward(rank, microbatch, this.#step.microbatches[microbatch]!);
  }

  backward(rank: number, microbatch: number): void {
    this.#backward(rank, microbatch, this.#step.microbatches[microbatch]!);
  }

  #forward(rank: number, microbatch: number, layers: readonly TextLayer[]): void {
    for (const layer of layers) {
      this.#pass(rank, microbatch, layer, layer.forward, "forward", false);
    }
  }

  #backward(rank: number, microbatch: number, layers: readonly TextLayer[]): void {
    for (const layer of layers.toReversed()) {
      this.#pass(rank, microbatch, layer, layer.inputGradient, "input-gradient", false);
      this.#pass(rank, microbatch, layer, layer.weightGradient, "weight-gradient", true);
    }
  }

  /** After the last microbatch: what is done once, gradients are waited for, then the weights change. */
  update(rank: number): void {
    const { before, after } = this.#step;
    this.#forward(rank, -1, after);
    this.#backward(rank, -1, after);
    this.#backward(rank, -1, before);
    for (const id of this.#pending[rank]!) this.#program.await(rank, id);
    const time = this.#w.layers.reduce((sum, { update }) => sum + update, 0);
    this.operations++;
    const label = this.#program.label({ kind: "optimizer", lane: "compute", action: "optimizer" });
    this.#program.compute(rank, this.#program.work(time, label));
  }

  #pass(
    rank: number,
    microbatch: number,
    { name }: TextLayer,
    pass: TextPass,
    kind: SpanKind,
    behind: boolean,
  ): void {
    const program = this.#program;
    const action = `${name} ${kind}`;
    this.operations++;
    const label = program.label({ kind, lane: "compute", action, microbatch });
    program.compute(rank, program.work(pass.compute, label));
    if (pass.collective === "NONE") return;
    this.operations++;
    const { bytes } = pass;
    const operation = kinds[pass.collective];
    const ranks = this.#members(pass, behind);
    const duration = collectiveTime({ operation, bytes, cluster: this.#cluster, ranks });
    const stream = behind ? 1 : 0;
    const own = program.label({
      kind: operation,
      lane: "inter",
      action: `${action}/${operation}`,
      microbatch,
      bytes,
    });
    const group = this.#groups[rank]!;
    const id = program.collective({ group, stream, duration, label: own });
    program.enter(rank, id, !behind);
    if (behind) this.#pending[rank]!.push(id);
  }

  /** Devices of the first group: tensor-parallel ranks are neighbours, then experts', then replicas. */
  #members({ group }: TextPass, behind: boolean): number[] {
    const { tp, ep, pp, allGpus, parallelism } = this.#w;
    const stage = allGpus / pp;
    const spread = (count: number, apart: number): number[] =>
      Array.from({ length: count }, (_, i) => i * apart);
    switch (group) {
      case "EP":
        return spread(ep, Math.min(tp, stage / ep));
      case "DP_EP":
        return spread(stage / ep, ep);
      case "DP":
        return spread(stage / tp, tp);
      default: {
        // ASTRA-sim 1: data parallelism sums weight gradients over all, model parallelism the rest.
        const data = parallelism === "DATA" || (behind && parallelism !== "MODEL");
        return data ? spread(stage / tp, tp) : spread(tp, 1);
      }
    }
  }
}
