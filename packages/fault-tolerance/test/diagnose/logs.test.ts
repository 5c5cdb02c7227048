import {
  LogFilter,
  diagnoseLog,
  firstResponse,
  lineTemplate,
  matchLine,
  metricAnomaly,
} from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

const healthy = Array.from(
  { length: 50 },
  (_, i) => `[2026-01-02 10:${i % 60}:00] iteration ${i} | loss 2.${i}e+00 | 41${i} TFLOP/s`,
);
const at = (host: number, ...texts: string[]): { host: number; text: string }[] =>
  texts.map((text) => ({ host, text }));

describe("the log filter", () => {
  it("learns the lines of healthy runs by their templates, and drops them", () => {
    const filter = new LogFilter([/^NCCL INFO/]);
    filter.learn(healthy);
    expect(filter.templates).toEqual([lineTemplate(healthy[0]!)]);
    const left = filter.compress([
      ...healthy,
      "NCCL INFO Channel 00/32",
      "[2026-01-02 11:00:00] iteration 51 | loss 9.1e+01 | 410 TFLOP/s",
      "slow response of 0xdeadbeef after 12 s",
      "slow response of 0xdeadbee0 after 13 s",
      "",
      "bye",
    ]);
    expect(left).toEqual(["slow response of 0xdeadbeef after 12 s", "bye"]);
  });

  it("never learns to hide an error", () => {
    const filter = new LogFilter([], 1);
    filter.learn(["RuntimeError: 5", "warning: 3", "step 1"]);
    expect(filter.templates).toEqual(["step #"]);
    expect(() => new LogFilter([], 0)).toThrow("least = 0");
  });
});

describe("log diagnosis", () => {
  it("blames the cause and not the timeouts that it made all others log", () => {
    const timeout = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8)";
    const diagnosis = diagnoseLog([
      ...at(0, ...healthy),
      ...at(1, timeout, "RuntimeError: NCCL communicator was aborted"),
      ...at(7, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."),
      ...at(2, timeout, "ConnectionResetError: [Errno 104] Connection reset by peer"),
    ]);
    expect(diagnosis).toMatchObject({
      kind: "known",
      reason: "NodeFailure",
      action: "evict",
      host: 7,
      consequences: ["NCCLTimeoutError", "ConnectionError", "RuntimeError"],
    });
  });

  it("names the first host and line of the cause, and what to do", () => {
    const line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
    expect(diagnoseLog(at(4, "ok", line, line))).toEqual({
      kind: "known",
      reason: "OutOfMemoryError",
      action: "fix",
      mitigation: "shard or recompute more, or use a smaller microbatch",
      host: 4,
      line,
      consequences: [],
    });
  });

  it("hands what no rule knows over, compressed", () => {
    const filter = new LogFilter();
    filter.learn(healthy);
    const lines = at(0, ...healthy, "custom kernel 3 gave up", "custom kernel 4 gave up");
    expect(diagnoseLog(lines, { filter })).toEqual({
      kind: "unknown",
      left: ["custom kernel 3 gave up"],
    });
    expect(diagnoseLog([])).toEqual({ kind: "unknown", left: [] });
  });

  it("takes rules of one's own", () => {
    const own = {
      reason: "KernelGaveUp",
      class: "software",
      pattern: /custom kernel \d+ gave up/,
      action: "restart",
      mitigation: "restart with the reference kernel",
    } as const;
    const lines = at(2, "custom kernel 3 gave up");
    expect(diagnoseLog(lines, { rules: [own] })).toMatchObject({ reason: "KernelGaveUp", host: 2 });
  });
});

describe("the first response", () => {
  const host = 3;

  it("evicts on certainty, aggregates a hang, climbs the ladder on NaN, rolls code back", () => {
    expect(firstResponse({ kind: "inspection", host, verdict: "evict" })).toMatchObject({
      kind: "evict",
      host,
    });
    expect(firstResponse({ kind: "inspection", host, verdict: "alert" })).toEqual({
      kind: "alert",
    });
    expect(firstResponse({ kind: "health", host, verdict: "remove" }).kind).toBe("evict");
    expect(firstResponse({ kind: "health", host, verdict: "drain" })).toEqual({
      kind: "drain",
      host,
    });
    expect(firstResponse({ kind: "health", host, verdict: "keep" }).kind).toBe("none");
    expect(firstResponse({ kind: "traffic", signal: { kind: "zero", host, since: 0 } })).toEqual({
      kind: "aggregate",
      why: "hang",
    });
    expect(firstResponse({ kind: "traffic", signal: { kind: "low", host, ratio: 0.2 } }).kind).toBe(
      "alert",
    );
    expect(firstResponse({ kind: "metric", anomaly: metricAnomaly([1], Number.NaN) })).toEqual({
      kind: "stop",
      symptom: "nan",
    });
    expect(firstResponse({ kind: "metric", anomaly: "spike" }).kind).toBe("alert");
    expect(firstResponse({ kind: "metric", anomaly: "none" }).kind).toBe("none");
    expect(firstResponse({ kind: "tensor-cores", share: 0.3 })).toEqual({
      kind: "aggregate",
      why: "slow",
    });
    expect(firstResponse({ kind: "tensor-cores", share: 0.9 }).kind).toBe("none");
  });

  it("follows what the message means", () => {
    const to = (line: string): unknown =>
      firstResponse({ kind: "keyword", host, error: matchLine(line)! });
    expect(to("kernel panic - not syncing")).toMatchObject({
      kind: "evict",
      reason: "NodeFailure",
    });
    expect(to("TypeError: x")).toEqual({ kind: "roll-back-code", reason: "TypeError" });
    expect(to("CUDA error: unknown error")).toEqual({ kind: "stop", symptom: "crash" });
  });
});
