/** The timeline in a Perfetto trace: what `toPerfetto` wrote, to the nanosecond. */
import { TriremeError } from "@trireme/core";
import type { SpanInput } from "../builder.ts";
import { TimelineBuilder } from "../builder.ts";
import { type Lane, type SpanKind, lanes, spanKinds } from "../kind.ts";
import type { Timeline } from "../timeline.ts";
import { isRecord, numberOf } from "../trace-events.ts";
import { loadSchema } from "./schema.ts";

interface Slice {
  readonly span: SpanInput;
  /** Position it had in the timeline that was written. */
  readonly place: number;
  readonly parents: readonly number[];
}

/**
 * Reads slices on tracks named by lanes in processes named "rank n", as `toPerfetto` writes them.
 * Other tracks are left out.
 * @throws TriremeError `PERFETTO` when the bytes are no trace or slices do not nest,
 * `PEER` when @bufbuild/protobuf is not installed.
 */
export async function fromPerfetto(bytes: Uint8Array): Promise<Timeline> {
  const { library, message } = await loadSchema();
  const trace = message("Trace");
  let json: unknown;
  try {
    json = library.toJson(trace, library.fromBinary(trace, bytes));
  } catch (cause) {
    throw new TriremeError("PERFETTO", `no Perfetto trace: ${String(cause)}`, { cause });
  }
  const packets: unknown = isRecord(json) ? json["packet"] : undefined;
  const ranks = new Map<string, number>();
  const tracks = new Map<string, { rank: number; lane: Lane }>();
  const open = new Map<string, { event: Record<string, unknown>; start: number }[]>();
  const slices: Slice[] = [];
  for (const packet of Array.isArray(packets) ? packets : []) {
    if (!isRecord(packet)) continue;
    const descriptor = packet["trackDescriptor"];
    if (isRecord(descriptor)) readDescriptor(descriptor, ranks, tracks);
    const event = packet["trackEvent"];
    if (!isRecord(event)) continue;
    const id = String(event["trackUuid"]);
    const track = tracks.get(id);
    if (track === undefined) continue;
    const time = (numberOf(packet["timestamp"]) ?? 0) / 1e9;
    let stack = open.get(id);
    if (stack === undefined) open.set(id, (stack = []));
    if (event["type"] === "TYPE_SLICE_BEGIN") {
      stack.push({ event, start: time });
    } else if (event["type"] === "TYPE_SLICE_END") {
      const begun = stack.pop();
      if (begun === undefined) {
        throw new TriremeError(
          "PERFETTO",
          `a slice on track ${id} ends at ${time} s without a start`,
        );
      }
      slices.push(slice(begun.event, track, begun.start, time));
    }
  }
  const order = slices.sort((a, b) => a.place - b.place);
  const index = new Map(order.map(({ place }, i) => [place, i]));
  const builder = new TimelineBuilder({
    capacity: order.length,
    ranks: [...ranks.values()].reduce((most, rank) => Math.max(most, rank + 1), 0),
  });
  for (const { span } of order) builder.add(span);
  order.forEach(({ parents }, i) => {
    for (const parent of parents) {
      const found = index.get(parent);
      if (found !== undefined) builder.link(i, found);
    }
  });
  return builder.finish();
}

function readDescriptor(
  descriptor: Record<string, unknown>,
  ranks: Map<string, number>,
  tracks: Map<string, { rank: number; lane: Lane }>,
): void {
  const id = String(descriptor["uuid"]);
  const process = descriptor["process"];
  if (isRecord(process)) {
    const named = /^rank (\d+)$/.exec(String(process["processName"]));
    if (named !== null) ranks.set(id, Number(named[1]));
    return;
  }
  const rank = ranks.get(String(descriptor["parentUuid"]));
  const name = String(descriptor["name"]);
  const lane = lanes.find((each) => name === each || name.startsWith(`${each} `));
  if (rank !== undefined && lane !== undefined) tracks.set(id, { rank, lane });
}

function slice(
  event: Record<string, unknown>,
  track: { readonly rank: number; readonly lane: Lane },
  start: number,
  end: number,
): Slice {
  const values = new Map<string, number>();
  const parents: number[] = [];
  const list: unknown = event["debugAnnotations"];
  for (const annotation of Array.isArray(list) ? list : []) {
    if (!isRecord(annotation)) continue;
    const value = numberOf(annotation["uintValue"] ?? annotation["doubleValue"]);
    if (value === undefined) continue;
    if (annotation["name"] === "parent") parents.push(value);
    else values.set(String(annotation["name"]), value);
  }
  const categories: unknown = event["categories"];
  const category: unknown = Array.isArray(categories) ? categories[0] : undefined;
  const kind: SpanKind = spanKinds.find((each) => each === category) ?? "other";
  const name = event["name"];
  return {
    place: values.get("span") ?? Infinity,
    parents,
    span: {
      ...track,
      kind,
      action: typeof name === "string" ? name : "",
      start,
      end,
      step: values.get("step"),
      stage: values.get("stage"),
      microbatch: values.get("microbatch"),
      bytes: values.get("bytes"),
      flops: values.get("flops"),
    },
  };
}
