/**
 * How rows of tokens travel to the ranks of their experts and back; the plans are those of
 * `@trireme/moe-dispatch`.
 */
import type { Routing } from "@trireme/moe-dispatch";
import type { Plan } from "@trireme/workload";
import type { LayerGroup } from "../layout/recorded-group.ts";
import type { Tape } from "../tape/tape.ts";
import type { Tensor } from "../memory/tensor.ts";
import { gatherDispatch } from "./gather-dispatch.ts";
import type { RowPrecision } from "./row-format.ts";
import { RowWire } from "./row-wire.ts";
import { sendDispatch } from "./send-dispatch.ts";
import { splitDispatch } from "./split-dispatch.ts";
import { uniqueDispatch } from "./unique-dispatch.ts";

/** One microbatch's rows at the experts of one rank. */
export interface Dispatch {
  /** [L + 1] first row of each of the rank's experts. */
  readonly starts: Int32Array;
  /** Rows of tokens x [T, width], in expert order: a tensor of the tape. */
  toExperts(x: Tensor): Tensor;
  /**
   * Tokens [T, width] as the weighted sums of their experts' rows: a tensor of the tape. The rows are
   * the dispatch's from then on.
   */
  toTokens(rows: Tensor): Tensor;
  /** The gradient of `toTokens`: that of the rows, and of the weights [T, k]. */
  toTokensGradient(dy: Tensor): { readonly rows: Tensor; readonly weights: Float32Array };
  /** The gradient of `toExperts`: that of the tokens. */
  toExpertsGradient(rows: Tensor): Tensor;
}

/** Where the experts of a layer are. */
export interface ExpertGroup {
  /** Ranks that hold different experts; undefined where one rank holds all. */
  readonly group: LayerGroup | undefined;
  /** Ranks that share out each expert; undefined where each is whole. */
  readonly split: LayerGroup | undefined;
  readonly dispatch: Plan["dispatch"];
  /** In what rows travel. */
  readonly precision: RowPrecision;
}

/** The dispatch of one microbatch with these weights [T, k] of its tokens' experts. */
export function dispatchOf(
  tape: Tape,
  routing: Routing,
  weights: Float32Array,
  { group, split, dispatch: form, precision }: ExpertGroup,
): Dispatch {
  const whole = ((): Dispatch => {
    if (group === undefined) return sendDispatch(tape, routing, weights, undefined);
    const wire = new RowWire(tape, group, precision);
    if (form === "all-gather") return gatherDispatch(tape, routing, weights, wire);
    if (form === "unique") return uniqueDispatch(tape, routing, weights, wire);
    return sendDispatch(tape, routing, weights, wire);
  })();
  if (split === undefined) return whole;
  return splitDispatch(tape, whole, new RowWire(tape, split, precision));
}
