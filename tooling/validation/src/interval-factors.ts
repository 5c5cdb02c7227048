/**
 * The factors of intervals, read off measurements: where four in five of measured over predicted lie (split conformal
 * prediction, Lei et al. 2018). Of n of them in order, the next one lies below the k-th with chance k / (n + 1), so that the
 * tenth and the ninetieth per cent are read at 0.1 and 0.9 times n + 1, between neighbours where that is no whole number.
 */
import type { PredictedKind } from "@trireme/cost-model";
import type { Compared } from "./outcome.ts";

/** Measured over predicted at the ends of an interval. */
export type Factors = readonly [low: number, high: number];

/**
 * Measurements from which on an architecture has factors of its own: five then lie beyond each end. With fewer it has those
 * of all architectures.
 */
const fewest = 50;

/** Below the prediction and above it, rounded outwards to 0.01. */
export function conformalFactors(ratios: readonly number[]): Factors {
  const sorted = ratios.toSorted((a, b) => a - b);
  const at = (share: number): number => {
    const position = Math.min(sorted.length - 1, Math.max(0, share * (sorted.length + 1) - 1));
    const low = Math.floor(position);
    const high = Math.min(sorted.length - 1, low + 1);
    return sorted[low]! + (position - low) * (sorted[high]! - sorted[low]!);
  };
  return [
    Math.min(1, Math.floor(100 * at(0.1)) / 100),
    Math.max(1, Math.ceil(100 * at(0.9)) / 100),
  ];
}

/** Single and grouped products run on the same kernels, and have one interval. */
function family(kind: PredictedKind): string {
  return kind === "grouped-gemm" ? "gemm" : kind;
}

/** Factors by kind, and by architecture or, as "all", over all of them. */
export type FactorTable = ReadonlyMap<string, ReadonlyMap<string, Factors>>;

/** The factors that these measurements show. */
export function readFactors(compared: readonly Compared[]): FactorTable {
  const kinds = new Map<string, Map<string, number[]>>();
  for (const { claim, measured, predicted } of compared) {
    if (claim === undefined) continue;
    const kind = family(claim.kind);
    const lists = kinds.get(kind) ?? new Map<string, number[]>();
    kinds.set(kind, lists);
    for (const name of [claim.accelerator.architecture, "all"]) {
      lists.set(name, [...(lists.get(name) ?? []), measured / predicted]);
    }
  }
  return new Map(
    [...kinds].map(([kind, lists]) => [
      kind,
      new Map(
        [...lists]
          .filter(([name, list]) => name === "all" || list.length >= fewest)
          .map(([name, list]) => [name, conformalFactors(list)]),
      ),
    ]),
  );
}

/** The factors of a table for a measurement; undefined where it has none of that kind. */
export function factorsFor(table: FactorTable, { claim }: Compared): Factors | undefined {
  if (claim === undefined) return undefined;
  const known = table.get(family(claim.kind));
  return known?.get(claim.accelerator.architecture) ?? known?.get("all");
}
