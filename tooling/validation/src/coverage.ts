/**
 * Whether intervals are honest. Their factors were read off half of the measurements (`calibrates`);
 * the share of the other half that falls inside is what counts.
 */
import { type Compared, type Outcome, isCompared } from "./outcome.ts";
import { quantile } from "./score.ts";

/** The intervals of one kind of measurement. */
export interface Coverage {
  readonly kind: string;
  /** Measurements that the intervals were not read off. */
  readonly n: number;
  /** Share of them inside. */
  readonly inside: number;
  /** The same over the measurements that they were read off. */
  readonly insideCalibration: number;
  /** Median of half the interval over the prediction. */
  readonly halfWidth: number;
  readonly met: boolean;
}

/** Share that is to be inside, and by how much the shares found may differ. */
const nominal = 0.8;
const tolerance = 0.08;
const widest = 0.25;

/** Whether a measurement belongs to the half that intervals are read off (FNV-1a of its id). */
export function calibrates(id: string): boolean {
  let hash = 0x81_1c_9d_c5;
  for (const character of id) {
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01_00_01_93);
  }
  // The lowest bit of FNV is the parity of the text; a higher one mixes.
  return ((hash >>> 16) & 1) === 1;
}

/** Coverage by kind, in the order in which kinds first appear. */
export function coverage(outcomes: readonly Outcome[]): Coverage[] {
  const kinds = new Map<string, Compared[]>();
  for (const o of outcomes) {
    if (!isCompared(o) || o.interval === undefined) continue;
    // Models with experts have intervals of their own.
    const kind = o.step?.model.experts === undefined ? o.group.kind : `${o.group.kind}, experts`;
    const list = kinds.get(kind) ?? [];
    list.push(o);
    kinds.set(kind, list);
  }
  return [...kinds].map(([kind, list]) => coverageOf(kind, list));
}

function coverageOf(kind: string, list: readonly Compared[]): Coverage {
  const heldOut = list.filter((c) => !calibrates(c.id));
  const halves = list
    .map(({ interval, predicted }) => (interval!.high - interval!.low) / (2 * predicted))
    .sort((a, b) => a - b);
  const inside = shareInside(heldOut);
  const halfWidth = quantile(halves, 0.5);
  return {
    kind,
    n: heldOut.length,
    inside,
    insideCalibration: shareInside(list.filter((c) => calibrates(c.id))),
    halfWidth,
    met: Math.abs(inside - nominal) <= tolerance && halfWidth <= widest,
  };
}

function shareInside(list: readonly Compared[]): number {
  const inside = list.filter(
    ({ interval, measured }) => interval!.low <= measured && measured <= interval!.high,
  );
  return list.length === 0 ? Number.NaN : inside.length / list.length;
}
