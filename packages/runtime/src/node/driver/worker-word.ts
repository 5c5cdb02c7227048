/**
 * What a worker and its agent say to each other: a JSON object a line on an open file descriptor, or
 * the same objects as messages of a thread. Only the worker asks, so that one which blocks in its
 * step needs no second thread to answer.
 */
import { TriremeError } from "@trireme/core";
import { z } from "zod";

/** A worker's word. */
export type WorkerWord =
  /** May I begin this step? Answered. */
  | { readonly kind: "begin"; readonly step: number }
  /** What state has the host's loader after this step? Answered. */
  | { readonly kind: "loader-state"; readonly step: number }
  /** The state after this step is where a restart will find it. */
  | { readonly kind: "saved"; readonly step: number }
  | {
      readonly kind: "metrics";
      readonly step: number;
      readonly values: Readonly<Record<string, number>>;
    }
  | {
      readonly kind: "fault";
      readonly scope: "host" | "software" | "loss";
      readonly reason: string;
    };

/** An answer; questions are answered in their order. */
export type AgentWord =
  /** To `begin`. */
  | { readonly kind: "go" }
  | { readonly kind: "end" }
  /** To `loader-state`: JSON, or why there is none. */
  | { readonly kind: "loader-state"; readonly state: unknown }
  | { readonly kind: "refused"; readonly reason: string };

/** Variable with the number of the descriptor, in a process; "thread" in a thread. */
export const channelVariable = "TRIREME_CHANNEL";

/** Characters of a word. */
export const longestWord: number = 1 << 16;

const longestReason = 4096;

/** JSON has no word for NaN and infinity: JavaScript writes null. */
const measured = z.custom<number | null>((value) => value === null || typeof value === "number", {
  error: "expected a number",
});

/** Values that are not finite are left out: a loss of NaN is no fault of the link. */
function finite(values: Readonly<Record<string, number | null>>): Record<string, number> {
  const known = Object.entries(values).flatMap(([name, value]) =>
    value !== null && Number.isFinite(value) ? [[name, value] as const] : [],
  );
  return Object.fromEntries(known);
}

const step = z.int().min(0);
const word = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("begin"), step }),
  z.strictObject({ kind: z.literal("loader-state"), step }),
  z.strictObject({ kind: z.literal("saved"), step }),
  z.strictObject({
    kind: z.literal("metrics"),
    step,
    values: z.record(z.string().max(256), measured).transform(finite),
  }),
  z.strictObject({
    kind: z.literal("fault"),
    scope: z.enum(["host", "software", "loss"]),
    // A stack of a hundred frames is no reason to take a fault of the host for one of the software.
    reason: z.string().transform((text) => text.slice(0, longestReason)),
  }),
]);

/** @throws TriremeError "WORKER" for what is not a word. */
export function parseWorkerWord(value: unknown): WorkerWord {
  const result = word.safeParse(value);
  if (result.success) return result.data;
  throw new TriremeError(
    "WORKER",
    `a worker said ${JSON.stringify(value)?.slice(0, 120)}, which is no word of the agent's: ${result.error.issues[0]?.message ?? "unknown"}`,
  );
}
