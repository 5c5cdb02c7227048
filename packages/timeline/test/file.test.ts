import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Timeline,
  TimelineBuilder,
  TimelineDecoder,
  TimelineEncoder,
  decodeTimeline,
  encodeTimeline,
  span,
  statistics,
} from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";
import { contents, timelines } from "./random-timeline.ts";

const time = fc.double({ noNaN: true, min: -1e300, max: 1e300 });

test("a file gives back every span to the last bit", () => {
  fc.assert(
    fc.property(timelines(time), (t) => {
      expect(contents(decodeTimeline(encodeTimeline(t)))).toEqual(contents(t));
    }),
  );
});

test("a file that grows step by step, read in pieces of any size, is the steps in a row", () => {
  fc.assert(
    fc.property(
      fc.array(timelines(time), { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }),
      (steps, sizes) => {
        const encoder = new TimelineEncoder();
        const bytes = Buffer.concat(steps.map((t) => encoder.push(t)));
        const decoder = new TimelineDecoder();
        for (let at = 0, k = 0; at < bytes.length; k++) {
          const size = sizes[k % sizes.length]!;
          decoder.push(bytes.subarray(at, at + size));
          at += size;
        }
        expect(decoder.pending).toBe(0);
        const whole = decoder.finish();
        expect(whole.length).toBe(encoder.length);
        let base = 0;
        for (const t of steps) {
          for (let i = 0; i < t.length; i++) {
            const { index, parents, ...rest } = span(t, i);
            expect(span(whole, base + i)).toEqual({
              index: base + index,
              parents: parents.map((p) => base + p),
              ...rest,
            });
          }
          base += t.length;
        }
      },
    ),
  );
});

test("a writer goes on after a file that it reads back", () => {
  const first = new TimelineEncoder().push(pipeline());
  const second = new TimelineEncoder(decodeTimeline(first)).push(pipeline(2));
  const both = decodeTimeline(Buffer.concat([first, second]));
  expect(both.length).toBe(16);
  expect(both.actions).toEqual(pipeline().actions);
  expect(statistics(both).makespan).toBe(18);
});

test("a writer goes on only after what a file has, whose names are numbered as they come", () => {
  const t = new TimelineBuilder();
  t.actionCode("never used");
  t.add({ rank: 0, lane: "compute", kind: "forward", action: "f", start: 0, end: 1 });
  const written = t.finish();
  expect(() => new TimelineEncoder(written)).toThrow(
    'action 0 is "never used", but the first that a file of these spans has is "f"; give what decodeTimeline reads of the file',
  );
  const more = new TimelineEncoder(decodeTimeline(encodeTimeline(written))).push(written);
  const both = decodeTimeline(Buffer.concat([encodeTimeline(written), more]));
  expect([0, 1].map((i) => span(both, i).action)).toEqual(["f", "f"]);
});

/** Many ranks of a long run: times as simulated, parents across blocks. */
function long(spans: number): Timeline {
  const t = new TimelineBuilder({ capacity: spans });
  const names = Array.from({ length: 64 }, (_, m) => t.actionCode(`${m % 8}F${m}`));
  const clock = new Float64Array(16);
  for (let i = 0; i < spans; i++) {
    const rank = (i * 7) % 16;
    const start = clock[rank]!;
    clock[rank] = start + 1 / (3 + (i % 5));
    t.addFast(
      rank,
      0,
      i % 4,
      names[i % 64]!,
      start,
      clock[rank],
      i >> 12,
      i % 8,
      i % 64,
      4096,
      1e9,
    );
    if (i >= 16) t.link(i, i - 16);
  }
  return t.finish();
}

const columns = [
  "rank",
  "lane",
  "kind",
  "action",
  "start",
  "end",
  "step",
  "stage",
  "microbatch",
  "bytes",
  "flops",
  "parentsAt",
  "parents",
] as const;

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

test("a file is a fraction of the columns, and a cut-off block at its end is left out", () => {
  const t = long(150_000);
  const bytes = encodeTimeline(t);
  // 66 bytes of columns and 8 of parents a span; all names are in use, in order.
  expect(bytes.length).toBeLessThan((t.length * 74) / 4);
  const back = decodeTimeline(bytes);
  for (const column of columns) {
    expect(Buffer.compare(bytesOf(back[column]), bytesOf(t[column]))).toBe(0);
  }
  expect(back.actions).toEqual(t.actions);
  const cut = decodeTimeline(bytes.subarray(0, bytes.length - 1));
  expect(cut.length).toBe(2 * 65_536);
  expect(span(cut, 131_071)).toEqual(span(t, 131_071));
});

test("a damaged byte, another file and another version are refused with the place", () => {
  const bytes = encodeTimeline(pipeline());
  for (let at = 0; at < bytes.length; at++) {
    const broken = bytes.slice();
    broken[at]! ^= 0x10;
    const decoder = new TimelineDecoder();
    let thrown: unknown;
    try {
      decoder.push(broken);
    } catch (error) {
      thrown = error;
    }
    // A wrong length may look like a block that is not all there yet.
    expect(thrown !== undefined || decoder.pending > 0).toBe(true);
  }
  expect(() => decodeTimeline(Buffer.from("{}"))).toThrow('files begin with "TRTL"');
  expect(() => decodeTimeline(Buffer.from("TRTL\u0002"))).toThrow("a timeline of version 2");
  const wrong = bytes.slice();
  wrong[20]! ^= 1;
  expect(() => decodeTimeline(wrong)).toThrow("the block at byte 5 is damaged: its checksum");
  expect(decodeTimeline(new Uint8Array()).length).toBe(0);
});
