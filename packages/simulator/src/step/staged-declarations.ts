/** What the instructions of one pipeline name, each declared when it is first named. */
import { printAction } from "@trireme/schedulers";
import type { StagedBoundary } from "@trireme/cost-model";
import type { Seconds } from "@trireme/core";
import type { SpanKind } from "@trireme/timeline";
import { linkBetween } from "@trireme/topology";
import type { Program } from "../program/program.ts";
import { laneOf } from "./describe-step.ts";
import type { StagedProgramOptions, StagedSchedule } from "./staged-costs.ts";
import { type Part, type TimedCollective, streams } from "./step-description.ts";

export class StagedDeclarations {
  readonly #program: Program;
  readonly #o: StagedProgramOptions;
  readonly #own: StagedSchedule;
  readonly #pipeline: number;
  /** By stage. */
  readonly #groups: readonly number[];
  readonly #known = new Map<string, number>();

  constructor(program: Program, o: StagedProgramOptions, own: StagedSchedule, pipeline: number) {
    this.#program = program;
    this.#o = o;
    this.#own = own;
    this.#pipeline = pipeline;
    this.#groups = own.stages.map(({ devices }) => program.group(devices));
  }

  /** The works of a share of a part. */
  works(
    key: string,
    stage: number,
    action: string,
    microbatch: number,
    { kind, duration, flops, kernels }: Part,
    share: number,
  ): number[] {
    const program = this.#program;
    const common = { kind, lane: "compute", stage, microbatch } as const;
    const list =
      kernels === undefined || kernels.length === 0 || share < 1
        ? [{ name: action, duration: duration * share, flops: flops * share }]
        : kernels;
    return list.map((k, n) =>
      this.#once(`work ${key} ${n}`, () =>
        program.work(k.duration, program.label({ ...common, action: k.name, flops: k.flops })),
      ),
    );
  }

  /** Between stage `after` and the next. */
  boundary(after: number): StagedBoundary {
    return this.#o.description.costs.pipelines[this.#pipeline]!.boundaries[after]!;
  }

  /** The message of a microbatch between two leaders. */
  message(from: number, to: number, microbatch: number, up: boolean): number {
    const { stages } = this.#own;
    const { cluster } = this.#o;
    const ends = [stages[from]!.devices[0]!, stages[to]!.devices[0]!] as const;
    return this.#once(`message ${from} ${to} ${microbatch}`, () => {
      const { sent, bytes } = this.boundary(Math.min(from, to));
      const latency = Math.min(sent, linkBetween(cluster, ...ends).latency);
      const label = (kind: SpanKind, action: "SEND" | "RECV", stage: number): number =>
        this.#program.label({
          kind,
          lane: laneOf(cluster, ends),
          action: printAction({ stage, kind: up ? `${action}_F` : `${action}_B`, microbatch }),
          stage,
          microbatch,
          bytes,
        });
      return this.#program.message({
        from: ends[0],
        to: ends[1],
        duration: sent - latency,
        latency,
        send: label("send", "SEND", from),
        receive: label("receive", "RECV", to),
      });
    });
  }

  /** The update of a stage. */
  update(stage: number, time: Seconds): number {
    const program = this.#program;
    const lane = this.#o.plan.offload === "optimizer" ? "host" : "compute";
    return this.#once(`update ${stage}`, () =>
      program.work(time, program.label({ kind: "optimizer", lane, action: "optimizer", stage })),
    );
  }

  /** A collective of the ranks of a stage. */
  collective(
    key: string,
    stage: number,
    c: TimedCollective & { readonly action: string; readonly microbatch?: number },
  ): number {
    const { duration, axis, ...named } = c;
    return this.#once(`${key} of ${stage}`, () => {
      const label = this.#program.label({ ...named, stage });
      const group = this.#groups[stage]!;
      return this.#program.collective({ group, stream: streams[axis], duration, label });
    });
  }

  /** The tied table's gradient between two ranks at the ends. */
  tied(shard: number, ends: readonly [number, number], duration: Seconds): number {
    const program = this.#program;
    return this.#once(`tied ${shard}`, () => {
      const lane = laneOf(this.#o.cluster, ends);
      const label = program.label({ kind: "all-reduce", lane, action: "REDUCE_GRAD/tied" });
      const group = program.group(ends);
      return program.collective({ group, stream: streams.dp, duration, label });
    });
  }

  #once(key: string, declare: () => number): number {
    let id = this.#known.get(key);
    if (id === undefined) this.#known.set(key, (id = declare()));
    return id;
  }
}
