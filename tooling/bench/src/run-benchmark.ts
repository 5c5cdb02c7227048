/** One benchmark and its peer to one figure. */
import type { Benchmark, Peer } from "./benchmark.ts";
import type { Figure } from "./figure.ts";
import { type Clocks, sample } from "./sample.ts";

/** When and where a run is made. */
export interface Surroundings {
  readonly clocks: Clocks;
  readonly date: string;
  readonly cpu: string;
}

/** A figure, or why there is none; and what there is to say of the peer. */
export type Outcome =
  | { readonly kind: "figure"; readonly figure: Figure; readonly note: string }
  | { readonly kind: "skipped"; readonly id: string; readonly note: string }
  | { readonly kind: "failed"; readonly id: string; readonly note: string };

/** Runs a benchmark: never throws, a failure is an outcome. */
export async function runBenchmark(benchmark: Benchmark, around: Surroundings): Promise<Outcome> {
  const { id, what, unit, better, target, peer } = benchmark;
  const { clocks, date, cpu } = around;
  try {
    await benchmark.before?.();
    try {
      const value = await sample(benchmark, benchmark, clocks);
      if (value === undefined)
        return { kind: "skipped", id, note: "cannot be had on this machine" };
      const { peerValue, note } = await samplePeer(peer, benchmark, clocks);
      const figure: Figure = {
        id,
        package: id.slice(0, id.indexOf("/")),
        what,
        value: rounded(value),
        unit,
        better,
        target,
        peer: peerValue === null ? null : (peer?.name ?? null),
        peerValue: peerValue === null ? null : rounded(peerValue),
        ratio: peerValue === null ? null : rounded(value / peerValue),
        date,
        cpu,
      };
      return { kind: "figure", figure, note };
    } finally {
      await benchmark.after?.();
    }
  } catch (error) {
    return { kind: "failed", id, note: error instanceof Error ? error.message : String(error) };
  }
}

/** Six significant digits: more than any clock here is good for. */
function rounded(value: number): number {
  return Number(value.toPrecision(6));
}

async function samplePeer(
  peer: Peer | undefined,
  benchmark: Benchmark,
  clocks: Clocks,
): Promise<{ peerValue: number | null; note: string }> {
  if (peer === undefined) return { peerValue: null, note: "" };
  if (peer.value !== undefined)
    return { peerValue: peer.value, note: `${peer.name}, published: ${peer.source}` };
  const absent = { peerValue: null, note: `${peer.name}: not installed` };
  try {
    const peerValue = await sample(peer, benchmark, clocks);
    return peerValue === undefined ? absent : { peerValue, note: peer.name };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return absent;
    throw error;
  }
}
