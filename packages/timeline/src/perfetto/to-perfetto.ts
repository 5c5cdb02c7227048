/**
 * A timeline as a Perfetto trace (protobuf): a process a rank with a track a lane, slices, flows
 * between ranks, and counters of the FLOPs and bytes per second that are under way.
 */
import type { Message } from "@bufbuild/protobuf";
import { lanes, spanKinds } from "../kind.ts";
import { rankOrder } from "../span-order.ts";
import type { Timeline } from "../timeline.ts";
import { tracks } from "../tracks.ts";
import { rateSteps } from "./rates.ts";
import { type Schema, eventType, loadSchema } from "./schema.ts";

/** All packets of a trace are of one writer, whose number only has to be above 0. */
const sequence = { trustedPacketSequenceId: 1 };
/** Numbers of a rank's tracks: 0 the process, then its two counters, then its lanes. */
const firstLane = 3;

/**
 * The bytes of the trace, to be opened at ui.perfetto.dev. Times are rounded to nanoseconds; when some
 * are negative, all count from the earliest. Needs the package @bufbuild/protobuf.
 * @throws TriremeError `PEER` with the command that installs it.
 */
export async function toPerfetto(t: Timeline): Promise<Uint8Array<ArrayBuffer>> {
  const schema = await loadSchema();
  const trace = schema.message("Trace");
  const parts: Uint8Array[] = [];
  let batch: Message[] = [];
  // A trace is a list of packets, so its bytes are those of its parts in a row.
  const flush = (): void => {
    const part = schema.library.create(trace, { packet: batch });
    parts.push(schema.library.toBinary(trace, part));
    batch = [];
  };
  for (const packet of packets(t, schema)) {
    batch.push(packet);
    if (batch.length === 4096) flush();
  }
  flush();
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function* packets(t: Timeline, schema: Schema): Generator<Message> {
  const earliest = t.start.reduce((a, b) => Math.min(a, b), 0);
  const nanoseconds = (time: number): number => Math.round((time - earliest) * 1e9);
  const layout = tracks(t, nanoseconds);
  const { thread, threads, order, start, end } = layout;
  const packetType = schema.message("TracePacket");
  const packet = (fields: Record<string, unknown>): Message =>
    schema.library.create(packetType, { ...sequence, ...fields });
  // As many for each rank as the one with the most spans at once needs.
  const tracksPerRank = BigInt(
    threads.reduce((most, { id }) => Math.max(most, id), 0) + firstLane + 1,
  );
  const uuid = (rank: number, track: number): bigint =>
    BigInt(rank) * tracksPerRank + BigInt(track + 1);

  let [lastRank, processes] = [-1, 0];
  for (const { rank, lane, depth, id } of threads) {
    if (rank !== lastRank) {
      // Numbered from 1: Perfetto takes process 0 for the kernel's idle task.
      const process = { pid: ++processes, processName: `rank ${rank}` };
      yield packet({ trackDescriptor: { uuid: uuid(rank, 0), process } });
      lastRank = rank;
    }
    const name = depth === 0 ? lanes[lane]! : `${lanes[lane]!} ${depth + 1}`;
    yield packet({
      trackDescriptor: { uuid: uuid(rank, firstLane + id), parentUuid: uuid(rank, 0), name },
    });
  }
  // Of ranks that do nothing the last tells how many there are.
  if (lastRank < t.ranks - 1) {
    const process = { pid: ++processes, processName: `rank ${t.ranks - 1}` };
    yield packet({ trackDescriptor: { uuid: uuid(t.ranks - 1, 0), process } });
  }

  const flows = crossRankFlows(t, start);
  const close = (i: number): Message =>
    packet({
      timestamp: BigInt(end[i]!),
      trackEvent: { type: eventType.end, trackUuid: uuid(t.rank[i]!, firstLane + thread[i]!) },
    });
  // Track by track, and there as a stack: what ends does so before what starts at the same time.
  const open = new Map<bigint, number[]>();
  for (const i of order) {
    const trackUuid = uuid(t.rank[i]!, firstLane + thread[i]!);
    let stack = open.get(trackUuid);
    if (stack === undefined) open.set(trackUuid, (stack = []));
    while (stack.length > 0 && end[stack[stack.length - 1]!]! <= start[i]!)
      yield close(stack.pop()!);
    const begins = {
      type: eventType.begin,
      trackUuid,
      categories: [spanKinds[t.kind[i]!]!],
      name: t.actions[t.action[i]!]!,
      debugAnnotations: annotations(t, i),
      flowIds: flows.leaving.get(i) ?? [],
      terminatingFlowIds: flows.arriving.get(i) ?? [],
    };
    yield packet({ timestamp: BigInt(start[i]!), trackEvent: begins });
    stack.push(i);
  }
  for (const stack of open.values()) while (stack.length > 0) yield close(stack.pop()!);

  const byRank = rankOrder(t, () => 0);
  for (let r = 0; r + 1 < byRank.at.length; r++) {
    const spans = byRank.order.subarray(byRank.at[r], byRank.at[r + 1]);
    const rank = t.rank[spans[0]!]!;
    for (const [track, name, unitName, amount] of [
      [1, "FLOP/s", "FLOP/s", t.flops],
      [2, "bytes/s", "B/s", t.bytes],
    ] as const) {
      const steps = rateSteps(t, spans, amount);
      if (steps === undefined) continue;
      const trackUuid = uuid(rank, track);
      const trackDescriptor = {
        uuid: trackUuid,
        parentUuid: uuid(rank, 0),
        name,
        counter: { unitName },
      };
      yield packet({ trackDescriptor });
      for (const { time, rate } of steps) {
        yield packet({
          timestamp: BigInt(nanoseconds(time)),
          trackEvent: { type: eventType.counter, trackUuid, doubleCounterValue: rate },
        });
      }
    }
  }
}

/** Numbers of the flows that leave and that reach each span: one for each parent on another rank. */
function crossRankFlows(
  t: Timeline,
  start: Float64Array,
): { leaving: Map<number, bigint[]>; arriving: Map<number, bigint[]> } {
  const leaving = new Map<number, bigint[]>();
  const arriving = new Map<number, bigint[]>();
  const add = (to: Map<number, bigint[]>, span: number, flow: bigint): void => {
    const list = to.get(span);
    if (list === undefined) to.set(span, [flow]);
    else list.push(flow);
  };
  let flow = 0n;
  for (let i = 0; i < t.length; i++) {
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
      const p = t.parents[e]!;
      if (t.rank[p] === t.rank[i] || start[p]! > start[i]!) continue;
      flow++;
      add(leaving, p, flow);
      add(arriving, i, flow);
    }
  }
  return { leaving, arriving };
}

function annotations(t: Timeline, i: number): Record<string, unknown>[] {
  const out: Record<string, unknown>[] = [{ name: "span", uintValue: BigInt(i) }];
  for (const name of ["step", "stage", "microbatch"] as const) {
    if (t[name][i]! >= 0) out.push({ name, uintValue: BigInt(t[name][i]!) });
  }
  for (const name of ["bytes", "flops"] as const) {
    if (t[name][i]! > 0) out.push({ name, doubleValue: t[name][i]! });
  }
  for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
    out.push({ name: "parent", uintValue: BigInt(t.parents[e]!) });
  }
  return out;
}
