/**
 * Memory of each simulated rank through a step: what it holds throughout, and activations of each
 * microbatch and stage from the start of their forward to the end of the last backward work that needs
 * them (W where the backward is split).
 */
import type { Bytes, Seconds } from "@trireme/core";
import { stageActivations } from "@trireme/cost-model";
import { categoryOf, spanKinds } from "@trireme/timeline";
import { type Model, type Plan, stages } from "@trireme/workload";
import type { StepSimulation } from "./simulate-step.ts";
import { rankLayout } from "./rank-layout.ts";

/** Memory of one rank as steps: `bytes[i]` from `times[i]` on. */
export interface MemoryOverTime {
  readonly rank: number;
  readonly times: Float64Array;
  readonly bytes: Float64Array;
  readonly peak: Bytes;
}

interface Held {
  from: Seconds;
  to: Seconds;
  readonly bytes: Bytes;
}

/** The memory of every simulated rank, ascending by rank. */
export function memoryOverTime(
  o: { readonly model: Model; readonly plan: Plan },
  simulation: StepSimulation,
): MemoryOverTime[] {
  const { model, plan } = o;
  const { timeline: t, memory } = simulation;
  const list = stages(model, plan);
  const kept = list.map((stage) => stageActivations(model, plan, stage));
  const { stageRank } = rankLayout(plan);
  const computes = spanKinds.map((kind) => categoryOf(kind) === "compute" && kind !== "optimizer");
  const held = new Map<number, Map<number, Held>>();
  const stagesOf = new Map<number, Set<number>>();
  for (let i = 0; i < t.length; i++) {
    const [rank, stage, microbatch] = [t.rank[i]!, t.stage[i]!, t.microbatch[i]!];
    if (!held.has(rank)) {
      held.set(rank, new Map());
      stagesOf.set(rank, new Set());
    }
    if (computes[t.kind[i]!] !== true || stage < 0 || microbatch < 0) continue;
    const own = held.get(rank)!;
    stagesOf.get(rank)!.add(stage);
    const key = stage * 2 ** 26 + microbatch;
    const known = own.get(key);
    if (known === undefined) {
      // In a bidirectional pipeline both directions' stages carry the model's.
      own.set(key, { from: t.start[i]!, to: t.end[i]!, bytes: kept[stage % list.length]! });
      continue;
    }
    known.from = Math.min(known.from, t.start[i]!);
    known.to = Math.max(known.to, t.end[i]!);
  }
  return [...held]
    .sort(([a], [b]) => a - b)
    .map(([rank, own]) => {
      // The memory model deals stages out in turn; a schedule that places them otherwise holds others.
      let base = 0;
      const places = [...stagesOf.get(rank)!].map((stage) => memory.ranks[stage % plan.pp]!);
      for (const m of places) base += (m.weights + m.gradients + m.optimizer) / plan.vpp;
      const around = places.length > 0 ? places : [memory.ranks[stageRank[rank]!]!];
      base += Math.max(...around.map((m) => m.workspace + m.overhead));
      return over(rank, base, [...own.values()]);
    });
}

function over(rank: number, base: Bytes, held: readonly Held[]): MemoryOverTime {
  const changes = held.flatMap(({ from, to, bytes }) => [
    { at: from, bytes },
    { at: to, bytes: -bytes },
  ]);
  // What is freed at an instant is there for what is allocated at it.
  changes.sort((a, b) => a.at - b.at || a.bytes - b.bytes);
  const times = [0];
  const bytes = [base];
  let peak = base;
  for (const change of changes) {
    const now = bytes.at(-1)! + change.bytes;
    if (times.at(-1) === change.at) bytes[bytes.length - 1] = now;
    else {
      times.push(change.at);
      bytes.push(now);
    }
    peak = Math.max(peak, bytes.at(-1)!);
  }
  return { rank, times: Float64Array.from(times), bytes: Float64Array.from(bytes), peak };
}
