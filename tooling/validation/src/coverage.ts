/**
 * Whether intervals are honest: how many measurements lie inside factors that were not read off them. Each half of the
 * measurements is judged by the factors of the other half, and each source by those of all other sources.
 */
import { type PredictedKind, interval } from "@trireme/cost-model";
import { type FactorTable, factorsFor, readFactors } from "./interval-factors.ts";
import { type Compared, type Outcome, isCompared } from "./outcome.ts";
import { quantile } from "./score.ts";

/** The intervals of one kind of prediction, or of a part of what it was compared with. */
export interface Coverage {
  readonly kind: string;
  readonly n: number;
  /** Share inside, each half by the other's factors. */
  readonly inside: number;
  /** The same of each half. */
  readonly halves: readonly [number, number];
  /** Share inside where the factors are those of other sources: what a new source may expect. */
  readonly otherSources: number;
  /** Median of half the interval that a prediction carries, over the prediction. */
  readonly halfWidth: number;
  /** Undefined for a part: intervals are promised by kind. */
  readonly met?: boolean;
}

/** Share that is to be inside, and by how much the shares found may differ. */
const nominal = 0.8;
const tolerance = 0.08;
const widest = 0.25;

/** Which half a measurement belongs to (FNV-1a of its id). */
export function firstHalf(id: string): boolean {
  let hash = 0x81_1c_9d_c5;
  for (const character of id) {
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01_00_01_93);
  }
  // The lowest bit of FNV is the parity of the text; a higher one mixes.
  return ((hash >>> 16) & 1) === 1;
}

/** A measurement, and whether it lay inside. */
interface Judged {
  readonly row: Compared;
  readonly kind: PredictedKind;
  readonly byHalf: boolean;
  readonly bySource: boolean;
  readonly halfWidth: number;
}

/** Coverage by kind, in the order in which kinds first appear, each followed by its parts where it has several. */
export function coverage(outcomes: readonly Outcome[]): Coverage[] {
  const kinds = new Map<PredictedKind, Judged[]>();
  for (const judged of judge(outcomes.filter(isCompared))) {
    const list = kinds.get(judged.kind) ?? [];
    list.push(judged);
    kinds.set(judged.kind, list);
  }
  return [...kinds].flatMap(([kind, list]) => {
    const whole = coverageOf(kind, list);
    const met = Math.abs(whole.inside - nominal) <= tolerance && whole.halfWidth <= widest;
    const parts = [...new Set(list.map(({ row }) => row.group.kind))];
    return [
      { ...whole, met },
      ...(parts.length === 1 ? [] : parts).map((part) =>
        coverageOf(
          `${kind}: ${part}`,
          list.filter(({ row }) => row.group.kind === part),
        ),
      ),
    ];
  });
}

function judge(rows: readonly Compared[]): Judged[] {
  const first = readFactors(rows.filter((row) => firstHalf(row.id)));
  const second = readFactors(rows.filter((row) => !firstHalf(row.id)));
  const others = new Map<string, FactorTable>();
  const withoutSource = (source: string): FactorTable => {
    let table = others.get(source);
    if (table === undefined) {
      table = readFactors(rows.filter((row) => sourceOf(row) !== source));
      others.set(source, table);
    }
    return table;
  };
  return rows.flatMap((row) => {
    if (row.claim === undefined) return [];
    const { kind, accelerator } = row.claim;
    const carried = interval(kind, 1, accelerator);
    return {
      row,
      kind,
      byHalf: inside(row, firstHalf(row.id) ? second : first),
      bySource: inside(row, withoutSource(sourceOf(row))),
      halfWidth: (carried.high - carried.low) / 2,
    };
  });
}

function sourceOf(row: Compared): string {
  return row.source ?? row.group.source;
}

/** Whether a measurement lies inside; no other source, no interval. */
function inside(row: Compared, table: FactorTable): boolean {
  const factors = factorsFor(table, row);
  if (factors === undefined) return false;
  const ratio = row.measured / row.predicted;
  return factors[0] <= ratio && ratio <= factors[1];
}

function coverageOf(kind: string, list: readonly Judged[]): Coverage {
  const share = (part: readonly Judged[], of: (judged: Judged) => boolean): number =>
    part.length === 0 ? Number.NaN : part.filter(of).length / part.length;
  const halves = [true, false].map((half) => list.filter(({ row }) => firstHalf(row.id) === half));
  const byHalf = ({ byHalf: found }: Judged): boolean => found;
  return {
    kind,
    n: list.length,
    inside: share(list, byHalf),
    halves: [share(halves[0]!, byHalf), share(halves[1]!, byHalf)],
    otherSources: share(list, ({ bySource }) => bySource),
    halfWidth: quantile(
      list.map((judged) => judged.halfWidth).sort((a, b) => a - b),
      0.5,
    ),
  };
}
