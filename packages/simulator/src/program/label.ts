/** How spans of a timeline are labelled. */
import type { Bytes, Flops } from "@trireme/core";
import type { Lane, SpanKind } from "@trireme/timeline";

/** What a span of the timeline says beside its rank and its times. */
export interface Label {
  readonly kind: SpanKind;
  readonly lane: Lane;
  readonly action: string;
  readonly stage?: number;
  readonly microbatch?: number;
  readonly bytes?: Bytes;
  readonly flops?: Flops;
}
