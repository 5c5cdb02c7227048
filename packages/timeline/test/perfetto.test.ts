import fc from "fast-check";
import { expect, test } from "vitest";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { TimelineBuilder } from "@trireme/timeline";
import { fromPerfetto, toPerfetto } from "@trireme/timeline/perfetto";
import { pipeline } from "./pipeline.ts";
import { contents, timelines } from "./random-timeline.ts";

test("a trace is read back to the nanosecond, parents and all", async () => {
  const time = fc.integer({ min: 0, max: 1e15 }).map((n) => n / 1e9);
  await fc.assert(
    fc.asyncProperty(timelines(time), async (t) => {
      expect(contents(await fromPerfetto(await toPerfetto(t)))).toEqual(contents(t));
    }),
    { numRuns: 50 },
  );
});

/** Fields of a message by number, read without a schema: numbers as they stand on the wire. */
function fields(bytes: Uint8Array): Map<number, (bigint | number | Uint8Array)[]> {
  const reader = new BinaryReader(bytes);
  const found = new Map<number, (bigint | number | Uint8Array)[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const value =
      type === WireType.LengthDelimited
        ? reader.bytes()
        : type === WireType.Bit64
          ? BigInt(reader.fixed64())
          : BigInt(reader.uint64());
    const list = found.get(number);
    if (list === undefined) found.set(number, [value]);
    else list.push(value);
  }
  return found;
}

function bytesOf(value: bigint | number | Uint8Array | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new TypeError(`${String(value)} is no message`);
  return value;
}

test("the wire has the published field numbers: packets, tracks, events, flows, counters", async () => {
  const t = new TimelineBuilder();
  const a = t.add({
    rank: 0,
    lane: "compute",
    kind: "forward",
    action: "0F0",
    start: 0,
    end: 2e-6,
    flops: 4,
  });
  t.add({
    rank: 1,
    lane: "inter",
    kind: "receive",
    action: "r",
    start: 2e-6,
    end: 3e-6,
    parents: [a],
    bytes: 8,
  });
  const packets = fields(await toPerfetto(t.finish()))
    .get(1)!
    .map((packet) => fields(bytesOf(packet)));
  // trusted_packet_sequence_id is 10 in TracePacket.
  expect(packets.every((packet) => packet.get(10)![0] === 1n)).toBe(true);
  const descriptors = packets
    .flatMap((packet) => packet.get(60) ?? [])
    .map((d) => fields(bytesOf(d)));
  const text = (value: Uint8Array): string => Buffer.from(value).toString();
  const names = descriptors.map((d) =>
    text(bytesOf((d.get(2) ?? fields(bytesOf(d.get(3)![0])).get(6))![0])),
  );
  expect(names).toEqual(["rank 0", "compute", "rank 1", "inter", "FLOP/s", "bytes/s"]);
  const events = packets
    .filter((packet) => packet.has(11))
    .map((packet) => ({ time: packet.get(8)![0], event: fields(bytesOf(packet.get(11)![0])) }));
  const begins = events.filter(({ event }) => event.get(9)![0] === 1n);
  expect(
    begins.map(({ time, event }) => [
      time,
      text(bytesOf(event.get(23)![0])),
      text(bytesOf(event.get(22)![0])),
    ]),
  ).toEqual([
    [0n, "0F0", "forward"],
    [2000n, "r", "receive"],
  ]);
  // flow_ids of the parent, terminating_flow_ids of the child: fixed64, one id.
  expect([begins[0]!.event.get(47), begins[1]!.event.get(48)]).toEqual([[1n], [1n]]);
  const bits = new DataView(new ArrayBuffer(8));
  const counters = events
    .filter(({ event }) => event.get(9)![0] === 4n)
    .map(({ time, event }) => {
      const value = event.get(44)![0]!;
      bits.setBigUint64(0, BigInt(value instanceof Uint8Array ? 0 : value));
      return [time, bits.getFloat64(0)];
    });
  expect(counters).toEqual(
    [
      [0n, 4 / 2e-6],
      [2000n, 0],
      [2000n, 8 / 1e-6],
      [3000n, 0],
    ].map(([time, rate]) => [time, typeof rate === "number" ? expect.closeTo(rate, 3) : rate]),
  );
});

test("on every track slices begin and end as a stack, in order of time", async () => {
  const time = fc.integer({ min: -1000, max: 1000 }).map((n) => n / 1e7);
  await fc.assert(
    fc.asyncProperty(timelines(time), async (t) => {
      const packets = (fields(await toPerfetto(t)).get(1) ?? []).map((packet) =>
        fields(bytesOf(packet)),
      );
      const tracks = new Map<unknown, { depth: number; time: bigint }>();
      let begun = 0;
      for (const packet of packets) {
        const body = packet.get(11)?.[0];
        if (body === undefined) continue;
        const event = fields(bytesOf(body));
        const now = BigInt(
          packet.get(8)![0] instanceof Uint8Array ? -1n : packet.get(8)![0]!.toString(),
        );
        const uuid = event.get(11)![0];
        const track = tracks.get(uuid) ?? { depth: 0, time: 0n };
        expect(now).toBeGreaterThanOrEqual(track.time);
        if (event.get(9)![0] === 1n) begun++;
        const depth =
          track.depth + (event.get(9)![0] === 1n ? 1 : event.get(9)![0] === 2n ? -1 : 0);
        expect(depth).toBeGreaterThanOrEqual(0);
        tracks.set(uuid, { depth, time: now });
      }
      expect(begun).toBe(t.length);
      expect([...tracks.values()].every(({ depth }) => depth === 0)).toBe(true);
    }),
    { numRuns: 30 },
  );
});

test("what is no trace is refused, and an empty one is empty", async () => {
  await expect(fromPerfetto(Uint8Array.of(10, 200))).rejects.toThrow("no Perfetto trace");
  expect((await fromPerfetto(await toPerfetto(new TimelineBuilder().finish()))).length).toBe(0);
  expect(contents(await fromPerfetto(await toPerfetto(pipeline(1))))).toEqual(
    contents(pipeline(1)),
  );
});

test("a thousand messages at once on one lane stay on their rank", async () => {
  const t = new TimelineBuilder({ ranks: 4 });
  for (let i = 0; i < 1000; i++) {
    const [start, end] = [i / 1000, (10_000 + i) / 1000];
    t.add({ rank: 0, lane: "inter", kind: "send", action: `s${i}`, start, end });
  }
  t.add({ rank: 1, lane: "intra", kind: "send", action: "other", start: 0.5, end: 20 });
  const back = await fromPerfetto(await toPerfetto(t.finish()));
  expect(contents(back)).toEqual(contents(t.finish()));
  // Ranks that did nothing are ranks too.
  expect(back.ranks).toBe(4);
});
