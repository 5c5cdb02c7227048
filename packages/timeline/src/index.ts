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
export { type Causes, type Comparison, compare } from "./compare.ts";
export { toChromeTrace } from "./chrome-trace.ts";
export { gantt } from "./gantt.ts";
