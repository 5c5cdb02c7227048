/**
 * Traces of PyTorch's profiler (Kineto, `export_chrome_trace`) as timelines: kernels and copies of
 * the device, or the operators themselves where everything ran on the CPU; collectives by their
 * backend's names; forward, backward and optimizer by the calls that launched the work.
 */
import type { Bytes, Seconds } from "@trireme/core";
import { TimelineBuilder } from "./builder.ts";
import { collectiveKind, messageBytes } from "./kineto-collectives.ts";
import { type Phase, LaunchContext } from "./kineto-context.ts";
import type { Lane, SpanKind } from "./kind.ts";
import { type Slice, isRecord, numberOf, readTraceEvents } from "./trace-events.ts";
import type { Timeline } from "./timeline.ts";

/** One rank's trace. */
export interface KinetoTrace {
  readonly timeline: Timeline;
  /** Time of the trace's clock at the timeline's 0: what to add to compare with other ranks. */
  readonly origin: Seconds;
  readonly rank: number;
  /** Ranks of the job; 1 when the trace does not tell. */
  readonly ranks: number;
  /** Name of the host; "" when the trace does not tell. */
  readonly host: string;
}

/** How a trace is read. */
export interface KinetoOptions {
  /** Rank of a trace that does not tell its own; 0 when left out. */
  readonly rank?: number;
  /**
   * Whether operators and annotations of the host become spans too. Left out: when the trace has no
   * kernels, so that they are the work.
   */
  readonly host?: boolean;
}

/**
 * The timeline of one rank, from a trace's text or parsed. Names of events are the actions; times
 * count from the first span.
 * @throws TriremeError `TRACE` when it is no trace.
 */
export function fromKineto(trace: unknown, options: KinetoOptions = {}): KinetoTrace {
  const { slices, header } = readTraceEvents(trace);
  const distributed = isRecord(header["distributedInfo"]) ? header["distributedInfo"] : {};
  const rank = numberOf(distributed["rank"]) ?? options.rank ?? 0;
  const ranks = numberOf(distributed["world_size"]) ?? 1;
  const context = new LaunchContext(slices);
  const onDevice = slices.some((slice) => slice.category === "kernel");
  const withHost = options.host ?? !onDevice;
  const chosen = slices
    .filter((s) => isDevice(s) || (withHost && isHost(s) && !context.isRepeat(s)))
    .sort((a, b) => a.start - b.start);
  const first = chosen[0]?.start ?? 0;
  const seconds = (microseconds: number): Seconds =>
    Math.round((microseconds - first) * 1000) / 1e9;

  const builder = new TimelineBuilder({
    capacity: chosen.length,
    ranks: Math.max(ranks, rank + 1),
  });
  for (const slice of chosen) {
    const launch = context.launchOf(slice);
    const { kind, lane, bytes } = classify(
      slice,
      launch ?? slice,
      context.phaseOf(slice),
      onDevice,
    );
    builder.add({
      rank,
      lane,
      kind,
      action: slice.name,
      start: seconds(slice.start),
      end: seconds(slice.end),
      step: context.stepOf(launch ?? slice),
      bytes,
    });
  }
  const host = header["host_name"];
  return {
    timeline: builder.finish(),
    origin: first / 1e6,
    rank,
    ranks,
    host: typeof host === "string" ? host : "",
  };
}

function isDevice({ category }: Slice): boolean {
  return category === "kernel" || category === "gpu_memcpy" || category === "gpu_memset";
}

function isHost({ category }: Slice): boolean {
  return category === "cpu_op" || category === "user_annotation";
}

function classify(
  slice: Slice,
  launch: Slice,
  phase: Phase,
  onDevice: boolean,
): { kind: SpanKind; lane: Lane; bytes: Bytes } {
  if (slice.category === "gpu_memcpy" || slice.category === "gpu_memset") {
    return { kind: "other", lane: "copy", bytes: numberOf(slice.args["bytes"]) ?? 0 };
  }
  const collective = collectiveKind(slice, launch);
  if (collective !== undefined) {
    return {
      kind: collective,
      lane: onDevice && isHost(slice) ? "host" : "inter",
      bytes: messageBytes(slice.args) || messageBytes(launch.args),
    };
  }
  // Beside a device the host only launches; its time is no computing.
  if (onDevice && isHost(slice)) return { kind: "other", lane: "host", bytes: 0 };
  return { kind: phase, lane: "compute", bytes: 0 };
}
