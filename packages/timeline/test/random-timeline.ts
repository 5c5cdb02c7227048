/** Any timeline at all, to test round trips with. */
import fc from "fast-check";
import { type Timeline, TimelineBuilder, lanes, spanKinds, spans } from "@trireme/timeline";

/** Timelines of up to 40 spans with every field set at random. */
export function timelines(time: fc.Arbitrary<number>): fc.Arbitrary<Timeline> {
  const count = fc.oneof(fc.integer({ min: -1, max: 5 }), fc.constant(2 ** 31 - 1));
  const size = fc.oneof(
    fc.constant(0),
    fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  );
  const one = fc.record({
    rank: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constant(2 ** 31 - 1)),
    lane: fc.constantFrom(...lanes),
    kind: fc.constantFrom(...spanKinds),
    action: fc.oneof(
      fc.constantFrom("0F0", "1B1", "2SEND_F0"),
      fc.string({ unit: "binary", maxLength: 4 }),
    ),
    times: fc.tuple(time, time),
    step: count,
    stage: count,
    microbatch: count,
    bytes: size,
    flops: size,
    parents: fc.array(fc.nat(100), { maxLength: 3 }),
  });
  return fc.array(one, { maxLength: 40 }).map((all) => {
    const builder = new TimelineBuilder();
    for (const { times, parents: _, ...rest } of all) {
      builder.add({ ...rest, start: Math.min(...times), end: Math.max(...times) });
    }
    all.forEach(({ parents }, i) => {
      for (const p of parents) if (p % all.length !== i) builder.link(i, p % all.length);
    });
    return builder.finish();
  });
}

/** All spans as objects, and what else a timeline says of itself. */
export function contents(t: Timeline): unknown {
  return { ranks: t.ranks, spans: [...spans(t)] };
}
