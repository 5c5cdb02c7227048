/** Times of a rank's actions in one step, as rows of numbers: no allocation per action. */
import { type ActionKind, printAction } from "@trireme/schedulers";
import type { Lane, SpanInput, SpanKind } from "@trireme/timeline";

/**
 * What a rank does: a schedule's actions; the sum of the tied table's gradients, the norm of all
 * gradients, the update, LAMB's norms of tensors that ranks share out, and the gathering of values that
 * replicas update in parts. An update on the host stands between copies of gradients to it and of
 * weights from it.
 */
export type RankAction =
  | ActionKind
  | "TIED"
  | "NORM"
  | "UPDATE"
  | "TRUST"
  | "SHARE"
  | "TO_HOST"
  | "HOST_UPDATE"
  | "TO_DEVICE"
  | GroupAction;

/** A collective, or a message, among the ranks of an axis within a stage. */
type GroupAction = `${GroupAxis}/${GroupOperation}`;
export type GroupAxis = "tp" | "cp" | "ep" | "etp";
export type GroupOperation =
  | "all-reduce"
  | "all-gather"
  | "reduce-scatter"
  | "all-to-all"
  | "send"
  | "receive";

const axes: readonly GroupAxis[] = ["tp", "cp", "ep", "etp"];
const operations: readonly GroupOperation[] = [
  "all-reduce",
  "all-gather",
  "reduce-scatter",
  "all-to-all",
  "send",
  "receive",
];

/** Order gives the number that a row holds. */
const kinds: readonly (readonly [RankAction, SpanKind])[] = [
  ["F", "forward"],
  ["B", "backward"],
  ["I", "input-gradient"],
  ["W", "weight-gradient"],
  ["SEND_F", "send"],
  ["SEND_B", "send"],
  ["RECV_F", "receive"],
  ["RECV_B", "receive"],
  ["REDUCE_GRAD", "all-reduce"],
  ["UNSHARD", "all-gather"],
  ["TIED", "all-reduce"],
  ["NORM", "all-gather"],
  ["SHARE", "all-gather"],
  ["TRUST", "all-gather"],
  ["UPDATE", "optimizer"],
  ["TO_HOST", "other"],
  ["HOST_UPDATE", "optimizer"],
  ["TO_DEVICE", "other"],
  ...axes.flatMap((axis) =>
    operations.map((operation) => [`${axis}/${operation}`, operation] as const),
  ),
];

const numbers: ReadonlyMap<RankAction, number> = new Map(kinds.map(([name], i) => [name, i]));

const computing: ReadonlySet<RankAction> = new Set(["F", "B", "I", "W", "UPDATE"]);

/** kind, stage, microbatch, start, end, bytes, FLOPs. */
const columns = 7;

export class SpanLog {
  #rows = new Float64Array(64 * columns);
  #length = 0;

  clear(): void {
    this.#length = 0;
  }

  /** Stage and microbatch are −1 where the action has none; times in seconds; bytes and FLOPs of all of it. */
  add(
    action: RankAction,
    stage: number,
    microbatch: number,
    start: number,
    end: number,
    bytes: number,
    flops: number,
  ): void {
    const at = this.#length++ * columns;
    if (at === this.#rows.length) {
      const wider = new Float64Array(this.#rows.length * 2);
      wider.set(this.#rows);
      this.#rows = wider;
    }
    const row = this.#rows;
    row[at] = numbers.get(action)!;
    row[at + 1] = stage;
    row[at + 2] = microbatch;
    row[at + 3] = start;
    row[at + 4] = end;
    row[at + 5] = bytes;
    row[at + 6] = flops;
  }

  /** The rows so far, copied: what travels to another thread. */
  rows(): Float64Array<ArrayBuffer> {
    return this.#rows.slice(0, this.#length * columns);
  }
}

function isGroupAction(kind: RankAction): kind is GroupAction {
  return kind.includes("/");
}

/** The name of an action, in the grammar of schedules where it has a word for it. */
function actionName(kind: RankAction, stage: number, microbatch: number): string {
  if (kind === "UPDATE" || kind === "HOST_UPDATE") return "optimizer";
  if (kind === "TO_HOST") return "gradients-to-host";
  if (kind === "TO_DEVICE") return "weights-to-device";
  if (kind === "TIED") return "REDUCE_GRAD/tied";
  if (kind === "NORM") return "gradient-norm";
  if (kind === "TRUST") return "trust-ratios";
  if (kind === "SHARE") return "UNSHARD/updated";
  if (isGroupAction(kind)) return kind;
  return printAction({ stage, kind, microbatch });
}

function laneOf(kind: RankAction): Lane {
  if (kind === "HOST_UPDATE") return "host";
  if (kind === "TO_HOST" || kind === "TO_DEVICE") return "copy";
  return computing.has(kind) ? "compute" : "intra";
}

/** The spans of a rank's rows, with times counted from `origin`. */
export function* spansOf(
  rows: Float64Array,
  rank: number,
  step: number,
  origin: number,
): Iterable<SpanInput> {
  for (let at = 0; at < rows.length; at += columns) {
    const stage = rows[at + 1]!;
    const microbatch = rows[at + 2]!;
    const [name, kind] = kinds[rows[at]!]!;
    yield {
      rank,
      lane: laneOf(name),
      kind,
      action: actionName(name, stage, microbatch),
      start: rows[at + 3]! - origin,
      end: rows[at + 4]! - origin,
      step,
      ...(stage >= 0 ? { stage } : {}),
      ...(microbatch >= 0 ? { microbatch } : {}),
      bytes: rows[at + 5]!,
      flops: rows[at + 6]!,
    };
  }
}
