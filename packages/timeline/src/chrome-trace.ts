/**
 * A timeline as Chrome trace JSON (the "Trace Event Format", object form): complete events with
 * times in microseconds, one process a rank, one thread a lane. Perfetto and speedscope open it.
 */
import { lanes, spanKinds } from "./kind.ts";
import { tracks } from "./tracks.ts";
import type { Timeline } from "./timeline.ts";

/** Nanoseconds, the resolution of the format, as exact integers. */
const nanoseconds = (seconds: number): number => Math.round(seconds * 1e9);

/**
 * Chrome trace JSON of all spans. Times are rounded to nanoseconds and count from the origin of the
 * timeline. Spans of one lane that overlap without nesting go to threads "lane 2", "lane 3", …,
 * since viewers draw a thread as a stack. Sizes and indices are in `args` where the span has them.
 */
export function toChromeTrace(t: Timeline, options: { readonly name?: string } = {}): string {
  const { thread, threads } = tracks(t, nanoseconds);
  const parts: string[] = [];
  let lastRank = -1;
  for (const { rank, lane, depth, id } of threads) {
    if (rank !== lastRank) {
      parts.push(
        metadata("process_name", rank, 0, `"name":"rank ${rank}"`),
        metadata("process_sort_index", rank, 0, `"sort_index":${rank}`),
      );
      lastRank = rank;
    }
    const name = depth === 0 ? lanes[lane]! : `${lanes[lane]!} ${depth + 1}`;
    parts.push(
      metadata("thread_name", rank, id, `"name":"${name}"`),
      metadata("thread_sort_index", rank, id, `"sort_index":${id}`),
    );
  }
  const names = t.actions.map((action) => JSON.stringify(action));
  for (let i = 0; i < t.length; i++) {
    const start = nanoseconds(t.start[i]!);
    const end = nanoseconds(t.end[i]!);
    parts.push(
      `{"ph":"X","name":${names[t.action[i]!]},"cat":"${spanKinds[t.kind[i]!]}",` +
        `"pid":${t.rank[i]},"tid":${thread[i]},"ts":${start / 1000},"dur":${duration(start, end)},` +
        `"args":{${details(t, i)}}}`,
    );
  }
  const head = `{"displayTimeUnit":"ms","otherData":{"name":${JSON.stringify(options.name ?? "trireme")},"schema":"${t.schema}","version":${t.version}},"traceEvents":[`;
  return `${head}\n${parts.join(",\n")}\n]}\n`;
}

/**
 * The duration in microseconds which, added to the start in floating point, gives exactly the end:
 * so that a reader that adds them sees neighbours touch and children stay inside their parent.
 */
function duration(start: number, end: number): number {
  const plain = (end - start) / 1000;
  return start / 1000 + plain === end / 1000 ? plain : end / 1000 - start / 1000;
}

function metadata(name: string, pid: number, tid: number, args: string): string {
  return `{"ph":"M","name":"${name}","pid":${pid},"tid":${tid},"args":{${args}}}`;
}

function details(t: Timeline, i: number): string {
  let out = "";
  if (t.step[i]! >= 0) out += `"step":${t.step[i]},`;
  if (t.stage[i]! >= 0) out += `"stage":${t.stage[i]},`;
  if (t.microbatch[i]! >= 0) out += `"microbatch":${t.microbatch[i]},`;
  if (t.bytes[i]! > 0) out += `"bytes":${t.bytes[i]},`;
  if (t.flops[i]! > 0) out += `"flops":${t.flops[i]},`;
  return out.slice(0, -1);
}
