import {
  type Timeline,
  TimelineBuilder,
  compare,
  criticalPath,
  decodeTimeline,
  encodeTimeline,
  statistics,
  toChromeTrace,
} from "@trireme/timeline";

/** A pipeline of 16 ranks for as many steps as it takes, with one all-reduce in eight spans. */
function record(spans: number): Timeline {
  const t = new TimelineBuilder({ capacity: spans });
  const actions = Array.from({ length: 64 }, (_, m) => t.actionCode(`${m % 8}F${m}`));
  const clock = new Float64Array(16);
  for (let i = 0; i < spans; i++) {
    const rank = (i * 7) % 16;
    const start = clock[rank]!;
    const end = start + 1 / (3 + (i % 5));
    if (i % 8 === 7) {
      // An all-reduce that begins while the next span computes.
      t.addFast(rank, 2, 7, actions[i % 64]!, start, end, i >> 14, i % 8, i % 64, 4096);
      continue;
    }
    clock[rank] = end;
    t.addFast(rank, 0, i % 2, actions[i % 64]!, start, end, i >> 14, i % 8, i % 64, 0, 1e9);
  }
  return t.finish();
}

const million = 1e6;
let small: Timeline | undefined;
let file: Uint8Array | undefined;
let large: Timeline | undefined;

function smallTimeline(): Timeline {
  return (small ??= record(million));
}

export const benchmarks = [
  {
    id: "timeline/write",
    what: "seconds to record 10^6 spans and encode them as a compressed file",
    unit: "s",
    better: "lower",
    target: 0.5,
    time: (): void => {
      encodeTimeline(record(million));
    },
  },
  {
    id: "timeline/read",
    what: "seconds to decode a file of 10^6 spans",
    unit: "s",
    better: "lower",
    target: null,
    before: (): void => {
      file = encodeTimeline(smallTimeline());
    },
    time: (): void => {
      decodeTimeline(file!);
    },
  },
  {
    id: "timeline/file-size",
    what: "bytes a span in the compressed file",
    unit: "B",
    better: "lower",
    target: null,
    measure: (): number => encodeTimeline(smallTimeline()).length / million,
    peer: {
      name: "the same as Chrome trace JSON",
      measure: (): number => toChromeTrace(smallTimeline()).length / million,
    },
  },
  {
    id: "timeline/critical-path",
    what: "seconds to find critical path and slack of 10^6 spans",
    unit: "s",
    better: "lower",
    target: null,
    repeats: 3,
    time: (): void => {
      criticalPath(smallTimeline());
    },
  },
  {
    id: "timeline/compare",
    what: "seconds to compare two timelines of 10^6 spans",
    unit: "s",
    better: "lower",
    target: null,
    repeats: 2,
    time: (): void => {
      compare(smallTimeline(), smallTimeline());
    },
  },
  {
    id: "timeline/memory",
    what: "bytes of array buffers of a timeline of 10^7 spans",
    unit: "B",
    better: "lower",
    target: 1e9,
    measure: (): number => {
      globalThis.gc?.();
      const before = process.memoryUsage().arrayBuffers;
      large = record(10 * million);
      globalThis.gc?.();
      return process.memoryUsage().arrayBuffers - before;
    },
  },
  {
    id: "timeline/statistics",
    what: "seconds for the statistics of 10^7 spans",
    unit: "s",
    better: "lower",
    target: 3,
    repeats: 3,
    before: (): void => {
      large ??= record(10 * million);
    },
    time: (): void => {
      statistics(large!);
    },
    after: (): void => {
      large = undefined;
    },
  },
] as const;
