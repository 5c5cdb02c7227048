export {
  type Category,
  type Lane,
  type SpanKind,
  categoryOf,
  kindCode,
  laneCode,
  lanes,
  spanKinds,
} from "./kind.ts";
export { type Span, type Timeline, span, spans } from "./timeline.ts";
export { type SpanInput, TimelineBuilder } from "./builder.ts";
export { type RankStatistics, type SpanSum, type Statistics, statistics } from "./statistics.ts";
export {
  type ActionDifference,
  type Causes,
  type CompareOptions,
  type Comparison,
  compare,
} from "./compare.ts";
export { type ChromeTraceOptions, chromeTracePieces, toChromeTrace } from "./chrome-trace.ts";
export { fromChromeTrace } from "./from-chrome-trace.ts";
export { gantt } from "./gantt.ts";
export { type CriticalPath, type CriticalSpan, criticalPath } from "./critical-path.ts";
export { matchSpans } from "./match-spans.ts";
export { TimelineEncoder, encodeTimeline } from "./file/encoder.ts";
export { TimelineDecoder, decodeTimeline } from "./file/decoder.ts";
export { type KinetoOptions, type KinetoTrace, fromKineto } from "./kineto.ts";
export { type Property, type Total, totals } from "./totals.ts";
export { select } from "./select.ts";
export { type TimeMatrix, timeMatrix } from "./time-matrix.ts";
export { type RankWait, rankWaits } from "./rank-waits.ts";
export { type Clock, type ClockMessage, alignClocks, applyClocks, clockMessages } from "./clock.ts";
export { type GanttSvgOptions, ganttSvg } from "./gantt-svg.ts";
