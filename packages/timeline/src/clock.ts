/**
 * Clocks of hosts that run apart, brought together by the messages between them. A message cannot
 * arrive before it is sent: on the plot of (time, received - sent) every message one way lies above
 * the line offset + drift × time of the two clocks, and every message back, with its sign turned,
 * below it. The line taken is the one that keeps the largest distance from both, which is exact when
 * the fastest messages of both ways take the same time (Duda, Harrus, Haddad, Bernard: Estimating
 * global time in distributed systems, ICDCS 1987; Moon, Skelly, Towsley, INFOCOM 1999).
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { largestGap } from "./largest-gap.ts";
import type { Timeline } from "./timeline.ts";

/** A message with the times that its two hosts' own clocks showed. */
export interface ClockMessage {
  readonly from: number;
  readonly to: number;
  readonly sent: Seconds;
  readonly received: Seconds;
}

/** A host's clock against the reference: it shows time × (1 + drift) + offset. */
export interface Clock {
  readonly offset: Seconds;
  /** Seconds per second, at most 1e-3 either way. */
  readonly drift: number;
  /** How far the offset may be off: half the time of the fastest way there and back, summed over hops. */
  readonly uncertainty: Seconds;
}

/**
 * The clocks of all hosts that messages in both ways connect, directly or through others, to the
 * reference (the lowest host when left out). Hosts that are not reached have no entry.
 * @throws TriremeError `CLOCK` when a time is not finite, a host no integer of at least 0, or when
 * messages contradict each other: no steady clocks let all of them arrive after they were sent.
 */
export function alignClocks(
  messages: Iterable<ClockMessage>,
  options: { readonly reference?: number } = {},
): ReadonlyMap<number, Clock> {
  const pairs = new Map<
    string,
    { a: number; b: number; there: [number, number][]; back: [number, number][] }
  >();
  let lowest = Infinity;
  for (const { from, to, sent, received } of messages) {
    if (!(Number.isSafeInteger(from) && Number.isSafeInteger(to) && Math.min(from, to) >= 0)) {
      throw new TriremeError(
        "CLOCK",
        `message from host ${from} to host ${to}: hosts are integers of at least 0`,
      );
    }
    if (!Number.isFinite(received - sent)) {
      throw new TriremeError(
        "CLOCK",
        `message from host ${from} at ${sent} s to host ${to} at ${received} s: times must be finite`,
      );
    }
    lowest = Math.min(lowest, from, to);
    if (from === to) continue;
    const [a, b] = from < to ? [from, to] : [to, from];
    const key = `${a} ${b}`;
    let pair = pairs.get(key);
    if (pair === undefined) pairs.set(key, (pair = { a, b, there: [], back: [] }));
    // The plot's time is that of clock a, its height clock b - clock a as the message shows it.
    if (from === a) pair.there.push([sent, received - sent]);
    else pair.back.push([received, sent - received]);
  }
  const links = [...pairs.values()]
    .filter(({ there, back }) => there.length > 0 && back.length > 0)
    .map(({ a, b, there, back }) => {
      const gap = largestGap(there, back);
      if (gap.half < 0) {
        throw new TriremeError(
          "CLOCK",
          `messages between hosts ${a} and ${b} arrive ${-2 * gap.half} s before they are sent, whatever the offset of their clocks: they are not steady, or the times are wrong`,
        );
      }
      return { a, b, clock: { offset: gap.offset, drift: gap.drift, uncertainty: gap.half } };
    });
  const { reference = lowest } = options;
  return reference === Infinity ? new Map() : spread(links, reference);
}

/** From the reference on along the most certain links (Prim's algorithm). */
function spread(
  links: readonly { readonly a: number; readonly b: number; readonly clock: Clock }[],
  reference: number,
): Map<number, Clock> {
  const clocks = new Map<number, Clock>([[reference, { offset: 0, drift: 0, uncertainty: 0 }]]);
  for (;;) {
    let best: { host: number; clock: Clock } | undefined;
    for (const { a, b, clock } of links) {
      if (clocks.has(a) === clocks.has(b)) continue;
      const next = clocks.has(a)
        ? { host: b, clock: through(clocks.get(a)!, clock) }
        : { host: a, clock: through(clocks.get(b)!, inverse(clock)) };
      if (best === undefined || next.clock.uncertainty < best.clock.uncertainty) best = next;
    }
    if (best === undefined) return clocks;
    clocks.set(best.host, best.clock);
  }
}

/** The clock that `second` shows of what `first` shows. */
function through(first: Clock, second: Clock): Clock {
  return {
    offset: first.offset * (1 + second.drift) + second.offset,
    drift: first.drift + second.drift + first.drift * second.drift,
    uncertainty: first.uncertainty + second.uncertainty,
  };
}

/** The clock that undoes another. */
function inverse({ offset, drift, uncertainty }: Clock): Clock {
  return { offset: -offset / (1 + drift), drift: -drift / (1 + drift), uncertainty };
}

/**
 * The timeline with the times of every rank's host on the reference clock.
 * @throws TriremeError `CLOCK` naming the rank whose host has no clock.
 */
export function applyClocks(
  t: Timeline,
  clocks: ReadonlyMap<number, Clock>,
  hostOf: (rank: number) => number,
): Timeline {
  const start = new Float64Array(t.length);
  const end = new Float64Array(t.length);
  for (let i = 0; i < t.length; i++) {
    const host = hostOf(t.rank[i]!);
    const clock = clocks.get(host);
    if (clock === undefined) {
      throw new TriremeError(
        "CLOCK",
        `host ${host} of rank ${t.rank[i]} has no clock: no messages in both ways connect it to the reference`,
      );
    }
    start[i] = (t.start[i]! - clock.offset) / (1 + clock.drift);
    end[i] = (t.end[i]! - clock.offset) / (1 + clock.drift);
  }
  return { ...t, start, end };
}

/** The messages that a timeline shows: from the start of each send to the end of its receive. */
export function* clockMessages(
  t: Timeline,
  hostOf: (rank: number) => number,
): Generator<ClockMessage> {
  for (let i = 0; i < t.length; i++) {
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
      const p = t.parents[e]!;
      const [from, to] = [hostOf(t.rank[p]!), hostOf(t.rank[i]!)];
      if (from !== to) yield { from, to, sent: t.start[p]!, received: t.end[i]! };
    }
  }
}
