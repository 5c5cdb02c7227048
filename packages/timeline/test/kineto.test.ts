import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fromKineto, spans, statistics, totals } from "@trireme/timeline";

function vector(name: string): string {
  return readFileSync(new URL(`vectors/${name}`, import.meta.url), "utf8");
}

interface Average {
  readonly key: string;
  readonly count: number;
  /** Microseconds. */
  readonly total: number;
}

test("a CPU trace of PyTorch has the counts and times of torch's own key averages", () => {
  const { timeline } = fromKineto(vector("kineto-gloo-rank0.json"));
  const averages: Average[] = JSON.parse(vector("kineto-gloo-rank0-averages.json"));
  const ours = new Map(totals(timeline, "action").map((row) => [row.value, row]));
  expect(new Set(ours.keys())).toEqual(new Set(averages.map((row) => row.key)));
  for (const { key, count, total } of averages) {
    expect([key, ours.get(key)!.spans]).toEqual([key, count]);
    // Starts and ends are rounded to nanoseconds each: at most 1 ns a span.
    expect(Math.abs(ours.get(key)!.time - total / 1e6)).toBeLessThanOrEqual(count * 1.01e-9);
  }
});

test("rank, size of the job, phases and collectives are those of the trace", () => {
  const { timeline, rank, ranks, host, origin } = fromKineto(vector("kineto-gloo-rank0.json"));
  expect([rank, ranks, timeline.ranks, host]).toEqual([0, 2, 2, "vm"]);
  expect(origin).toBeGreaterThan(0);
  const s = statistics(timeline);
  expect(s.start).toBe(0);
  expect(s.byKind["all-reduce"]?.spans).toBe(4);
  const kind = new Map([...spans(timeline)].map((span) => [span.action, span.kind]));
  expect(kind.get("aten::addmm")).toBe("forward");
  expect(kind.get("autograd::engine::evaluate_function: AddmmBackward0")).toBe("backward");
  expect(kind.get("Optimizer.step#AdamW.step")).toBe("optimizer");
});

/** Two kernels, an all-reduce and a copy of one step of a GPU, launched as PyTorch does. */
const gpu = {
  distributedInfo: { rank: 3, world_size: 8 },
  host_name: "node-1",
  traceEvents: [
    call("user_annotation", "ProfilerStep#12", 0, 100, {}),
    call("cpu_op", "aten::mm", 1, 3, { "External id": 1 }),
    call("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 10, 10, {
      "External id": 2,
    }),
    call("cpu_op", "aten::mm", 12, 3, { "External id": 3 }),
    call("cuda_runtime", "cudaLaunchKernel", 13, 1, { correlation: 77 }),
    call("cpu_op", "record_param_comms", 30, 2, {
      "External id": 4,
      "Collective name": "allreduce",
      "In msg nelems": 1000,
      "Out msg nelems": 1000,
      dtype: "BFloat16",
    }),
    work("kernel", "sm90_gemm", 20, 30, { "External id": 1, stream: 7 }),
    work("kernel", "sm90_gemm", 50, 40, { correlation: 77, stream: 7 }),
    work("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 60, 50, {
      "External id": 4,
      stream: 20,
    }),
    work("kernel", "ncclDevKernel_SendRecv", 115, 5, { "Collective name": "recv", stream: 21 }),
    work("gpu_memcpy", "Memcpy HtoD", 110, 10, { bytes: 4096, stream: 7 }),
    work("gpu_user_annotation", "ProfilerStep#12", 20, 100, {}),
  ],
};

function call(cat: string, name: string, ts: number, dur: number, args: object): object {
  return { ph: "X", cat, name, pid: 500, tid: 500, ts, dur, args };
}

function work(cat: string, name: string, ts: number, dur: number, args: object): object {
  return { ph: "X", cat, name, pid: 0, tid: 7, ts, dur, args };
}

test("kernels take their phase, step and size from what launched them", () => {
  const { timeline, rank, host } = fromKineto(gpu);
  expect([rank, host, timeline.ranks]).toEqual([3, "node-1", 8]);
  expect([...spans(timeline)]).toMatchObject([
    { kind: "forward", lane: "compute", action: "sm90_gemm", start: 0, end: 30e-6, step: 12 },
    { kind: "backward", lane: "compute", action: "sm90_gemm", start: 30e-6, step: 12 },
    { kind: "all-reduce", lane: "inter", bytes: 2000, step: 12, start: 40e-6, end: 90e-6 },
    { kind: "other", lane: "copy", bytes: 4096, step: -1 },
    { kind: "receive", lane: "inter", action: "ncclDevKernel_SendRecv" },
  ]);
  // Of the all-reduce's 50 us the backward hides 30.
  expect(statistics(timeline).ranks[0]!.overlap).toBeCloseTo(30e-6, 12);
});

test("with the host asked for, its calls stand beside the kernels on a lane of their own", () => {
  const { timeline } = fromKineto(gpu, { host: true });
  expect(statistics(timeline).byLane.host?.spans).toBe(5);
  expect(fromKineto([], { rank: 5 })).toMatchObject({ rank: 5, ranks: 1, host: "" });
});

test("a call belongs to the step that it started in, of a thousand, and outside of all to none", () => {
  const traceEvents = Array.from({ length: 1000 }, (_, n) => [
    {
      ph: "X",
      cat: "user_annotation",
      name: `ProfilerStep#${n}`,
      pid: 1,
      tid: 1,
      ts: 100 * n,
      dur: 90,
    },
    { ph: "X", cat: "cpu_op", name: "inside", pid: 1, tid: 1, ts: 100 * n + 50, dur: 1 },
    { ph: "X", cat: "cpu_op", name: "between", pid: 1, tid: 1, ts: 100 * n + 95, dur: 1 },
  ]).flat();
  const { timeline } = fromKineto({ traceEvents });
  for (const { action, step, start } of spans(timeline)) {
    expect(step).toBe(action === "between" ? -1 : Math.floor(start / 100e-6 + 1e-6));
  }
});
