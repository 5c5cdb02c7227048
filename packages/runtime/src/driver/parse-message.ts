/**
 * Messages from the wire: every field checked, none unknown, every text and list of bounded length.
 * What does not fit is refused whole, with the place and the rule.
 */
import { TriremeError } from "@trireme/core";
import { z } from "zod";
import type { AgentMessage, DriverMessage } from "./message.ts";

/** Ranks of one host, or of a run, that a message may name. */
const mostRanks = 1 << 20;

const count = z.int().min(0);
const rank = count.max(mostRanks);
const name = z.string().min(1).max(256);
const text = z.string().max(1 << 16);
const endpoint = z.strictObject({ address: name, port: z.int().min(1).max(65_535) });

const failure = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("exit"), rank, code: z.int() }),
  z.strictObject({ kind: z.literal("signal"), rank, signal: name }),
  z.strictObject({ kind: z.literal("start"), rank, reason: text }),
  z.strictObject({ kind: z.literal("stall"), rank, step: count, seconds: z.number().min(0) }),
  z.strictObject({ kind: z.literal("lease"), rank, seconds: z.number().min(0) }),
  z.strictObject({
    kind: z.literal("declared"),
    rank,
    scope: z.enum(["host", "software", "loss"]),
    reason: text,
  }),
]);

const agentMessage = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("join"),
    host: rank,
    incarnation: name,
    ranks: rank.min(1),
    endpoint,
  }),
  z.strictObject({
    kind: z.literal("report"),
    host: rank,
    incarnation: name,
    generation: count,
    begun: z.boolean(),
    done: count,
    saved: count,
    failures: z.array(failure).max(64).readonly(),
    finished: z.boolean(),
    endpoint,
    bound: count.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal("log"),
    host: rank,
    generation: count,
    rank,
    stream: z.enum(["stdout", "stderr"]),
    lines: z.array(text).max(4096).readonly(),
    dropped: count,
  }),
  z.strictObject({
    kind: z.literal("metrics"),
    host: rank,
    generation: count,
    rank,
    step: count,
    values: z.record(name, z.number()),
  }),
]);

const order = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("train"),
    generation: count,
    step: count,
    skip: count.exactOptional(),
    version: count.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal("halt"),
    generation: count,
    check: z.literal(true).exactOptional(),
  }),
  z.strictObject({ kind: z.literal("evict"), reason: text }),
]);

const launch = z.strictObject({
  generation: count,
  members: z
    .array(z.strictObject({ host: rank, firstRank: rank, ranks: rank.min(1) }))
    .min(1)
    .readonly(),
  world: rank.min(1),
  master: endpoint,
});

const driverMessage = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("welcome"),
    term: count,
    heartbeat: z.number().positive(),
    lease: z.number().positive().exactOptional(),
  }),
  z.strictObject({
    kind: z.literal("answer"),
    order,
    launch: launch.exactOptional(),
    stop: z
      .discriminatedUnion("kind", [
        z.strictObject({ kind: z.literal("hold") }),
        z.strictObject({ kind: z.literal("after"), step: count }),
      ])
      .exactOptional(),
    end: z.strictObject({ ok: z.boolean(), reason: text, step: count }).exactOptional(),
  }),
  z.strictObject({ kind: z.literal("ask") }),
  z.strictObject({ kind: z.literal("refuse"), reason: text }),
]);

/** @throws TriremeError "PROTOCOL" with the first place that does not fit. */
export function parseAgentMessage(json: string): AgentMessage {
  return check(agentMessage, json);
}

/** @throws TriremeError "PROTOCOL" with the first place that does not fit. */
export function parseDriverMessage(json: string): DriverMessage {
  return check(driverMessage, json);
}

function check<Message>(schema: z.ZodType<Message>, json: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new TriremeError("PROTOCOL", `a message is not JSON: ${shown(json)}`, { cause });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "message" : issue.path.join(".");
  throw new TriremeError(
    "PROTOCOL",
    `a message does not fit: ${place}: ${issue?.message ?? "unknown"}; it was ${shown(json)}`,
  );
}

function shown(json: string): string {
  return json.length > 120 ? `${JSON.stringify(json.slice(0, 120))}…` : JSON.stringify(json);
}
