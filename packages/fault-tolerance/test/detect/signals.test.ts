import { createRng, minutes } from "@trireme/core";
import {
  KeywordWatch,
  OutlierWatch,
  TrafficWatch,
  acmeReasons,
  analyseHang,
  heatMap,
  heatMapText,
  isSilent,
  knownErrors,
  learnedDeadline,
  matchLine,
  metricAnomaly,
  outliers,
  phi,
  slowHosts,
} from "@trireme/fault-tolerance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("metrics of training", () => {
  it("are anomalous when NaN or five times the recent median", () => {
    expect(metricAnomaly([2, 2, 2], Number.NaN)).toBe("not-finite");
    expect(metricAnomaly([2, 2, 2], 10)).toBe("spike");
    expect(metricAnomaly([2, 2, 2], 9.9)).toBe("none");
    expect(metricAnomaly([], 1e9)).toBe("none");
    // BLOOM's gradient norm went from 0.24 to 960 in two steps.
    expect(metricAnomaly([0.24, 0.25, 0.24], 960.35)).toBe("spike");
  });

  it("are outliers beyond median + k MAD", () => {
    expect(outliers([1, 1.1, 0.9, 1, 50])).toEqual([4]);
    expect(outliers([3, 3, 3, 3.1])).toEqual([3]);
    expect(outliers([])).toEqual([]);
    expect(outliers([1, Number.NaN, 1])).toEqual([1]);
    expect(() => outliers([1], 0)).toThrow("k = 0");
  });

  it("move the threshold of a watch with the metric, and not with its outliers", () => {
    const rng = createRng(3);
    const watch = new OutlierWatch();
    let alarms = 0;
    for (let step = 0; step < 5000; step++) {
      // A gradient norm that falls slowly, with 10 % noise.
      const norm = (1 / (1 + step / 1000)) * (1 + 0.1 * rng.normal());
      if (watch.observe(norm)) alarms++;
    }
    // Six scaled deviations of a normal, estimated from 64 values: fewer than one in a thousand.
    expect(alarms).toBeLessThan(5);
    const before = watch.threshold;
    for (let i = 0; i < 100; i++) expect(watch.observe(50)).toBe(true);
    expect(watch.threshold).toBe(before);
    expect(watch.observe(Number.NaN)).toBe(true);
    watch.reset();
    expect(watch.threshold).toBe(Infinity);
    expect(() => new OutlierWatch({ window: 2 })).toThrow("a window of 2");
  });
});

describe("heartbeats", () => {
  it("are silent from the deadline on", () => {
    expect([isSilent(0, 9.9, 10), isSilent(0, 10, 10), isSilent(20, 10, 10)]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it("make phi grow with the silence", () => {
    const at = [1, 2, 3, 5, 100].map((now) => phi([1, 1, 1], 0, now));
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(at[0]).toBeCloseTo(Math.log10(2), 6);
    expect(at[2]).toBeGreaterThan(8);
    expect(Number.isFinite(at[4])).toBe(true);
    expect(() => phi([], 0, 1)).toThrow("at least 1 observed interval");
  });

  it("have a deadline of five times the longest that was seen (NVIDIA)", () => {
    expect(learnedDeadline([2, 7, 3])).toBe(35);
    expect(() => learnedDeadline([])).toThrow("longest of 0 times is 0 s");
    expect(() => learnedDeadline([1], 1)).toThrow("factor 1");
  });
});

describe("error keywords", () => {
  const lines: Record<string, string> = {
    ECCError: "NVRM: Xid (PCI:0000:3b:00): 94, pid=1234, Contained: SM error",
    NVLinkError: "NVRM: Xid (PCI:0000:3b:00): 74, pid=99, NVLink: fatal error detected on link 2",
    NodeFailure: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
    NetworkError: "NET/IB : Got completion from peer 10.0.0.3<4711> with status=12 opcode=32 error",
    DataloaderKilled: "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.",
    OutOfMemoryError: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    CUDAError: "RuntimeError: CUDA error: an illegal memory access was encountered",
    S3StorageError: "botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL",
    ModelLoadingError: "RuntimeError: Error(s) in loading state_dict for GPT:",
    DatasetLoadingError: "datasets.exceptions.DatasetGenerationError: An error occurred",
    ArgumentError: "train.py: error: unrecognized arguments: --lrr",
    FileNotFoundError: "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
    PermissionError: "PermissionError: [Errno 13] Permission denied: '/data'",
    ImportError: "ModuleNotFoundError: No module named 'flash_attn'",
    AttributeError: "AttributeError: 'NoneType' object has no attribute 'shape'",
    AssertionError: "[rank3]: AssertionError",
    ValueError: "ValueError: too many values to unpack (expected 2)",
    ZeroDivisionError: "ZeroDivisionError: division by zero",
    TypeError: "TypeError: unsupported operand type(s)",
    NameError: "NameError: name 'foo' is not defined",
    KeyError: "KeyError: 'lm_head'",
    SyntaxError: "SyntaxError: invalid syntax",
    IndexError: "IndexError: list index out of range",
    CalledProcessError: "subprocess.CalledProcessError: Command 'ninja' returned status 1.",
    OSError: "OSError: [Errno 5] Input/output error",
    NCCLTimeoutError: "[Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=88)",
    NCCLRemoteError: "ncclRemoteError: A call failed possibly due to a network error",
    ConnectionError: "ConnectionResetError: [Errno 104] Connection reset by peer",
    RuntimeError: "RuntimeError: shape '[2, 3]' is invalid for input of size 5",
  };

  it("name each of Acme's 29 reasons by a line of its own", () => {
    expect(Object.keys(lines).toSorted()).toEqual(acmeReasons.map((each) => each.name).toSorted());
    for (const [reason, line] of Object.entries(lines)) {
      expect([line, matchLine(line)?.reason]).toEqual([line, reason]);
    }
  });

  it("find nothing in the lines of a healthy run", () => {
    for (const line of [
      "iteration 120/ 5000 | lm loss: 2.31E+00 | grad norm: 0.81 | number of nan iterations: 0",
      "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB",
      "saving checkpoint at iteration 500 to /ckpt",
      "NVLink topology: 8 GPUs fully connected",
    ]) {
      expect([line, matchLine(line)]).toEqual([line, undefined]);
    }
  });

  it("keep no state in their patterns and end on a line of any length", () => {
    for (const { pattern } of knownErrors) expect(pattern.flags).not.toMatch(/[gy]/);
    expect(matchLine("NVLink ".repeat(1e5))).toBeUndefined();
  });

  it("tell an incident once, and again after a reset", () => {
    const watch = new KeywordWatch();
    const line = lines["ECCError"]!;
    expect(watch.observe(3, line)).toMatchObject({ host: 3, error: { reason: "ECCError" } });
    expect(watch.observe(3, line)).toBeUndefined();
    expect(watch.observe(4, line)).toBeDefined();
    watch.reset(3);
    expect(watch.observe(3, line)).toBeDefined();
    watch.reset();
    expect(watch.observe(4, line)).toBeDefined();
    expect(watch.observe(5, "all is well")).toBeUndefined();
  });
});

describe("RDMA traffic", () => {
  it("at zero for ten minutes is a hang, told once until it has moved or was reset", () => {
    const watch = new TrafficWatch(2);
    const at = (minute: number, rate: number): unknown => watch.observe(1, rate, minutes(minute));
    for (let m = 0; m < 5; m++) expect(at(m, 1e9)).toBeUndefined();
    for (let m = 5; m < 14; m++) expect(at(m, 0)).toBeUndefined();
    expect(at(14, 0)).toEqual({ kind: "zero", host: 1, since: minutes(4) });
    expect(at(15, 0)).toBeUndefined();
    expect(at(16, 1e9)).toBeUndefined();
    for (let m = 17; m < 26; m++) expect(at(m, 0)).toBeUndefined();
    expect(at(26, 0)).toEqual({ kind: "zero", host: 1, since: minutes(16) });
    watch.reset();
    expect(at(27, 0)).toBeUndefined();
    expect(at(37, 0)).toMatchObject({ kind: "zero" });
  });

  it("well below the usual is an alert", () => {
    const watch = new TrafficWatch(1);
    for (let i = 0; i < 10; i++) watch.observe(0, 100, i);
    expect(watch.observe(0, 30, 10)).toEqual({ kind: "low", host: 0, ratio: 0.3 });
    expect(watch.observe(0, 30, 11)).toBeUndefined();
    expect(watch.observe(0, 90, 12)).toBeUndefined();
    expect(watch.observe(0, 30, 13)).toMatchObject({ kind: "low" });
    expect(() => watch.observe(1, 0, 14)).toThrow("host 1 of 1");
    expect(() => watch.observe(0, -1, 14)).toThrow("-1 B/s");
    expect(() => new TrafficWatch(1, { low: 2 })).toThrow("low 2");
  });
});

describe("flight records", () => {
  const record = (rank: number, sequence = 7, operation = "all-reduce") => ({
    rank,
    group: "dp0",
    sequence,
    operation,
  });

  it("accuse the rank that logs nothing", () => {
    const report = analyseHang(4, [record(0), record(1, 6), record(3)]);
    expect(report).toEqual({ silent: [2], behind: [1], mismatched: [], culprits: [2] });
  });

  it("accuse the one that is in another operation, and else the one behind", () => {
    const mixed = analyseHang(4, [record(0), record(1), record(2), record(3, 7, "all-gather")]);
    expect(mixed.culprits).toEqual([3]);
    expect(analyseHang(3, [record(0), record(1), record(2, 5)]).culprits).toEqual([2]);
    // Half and half accuses nobody.
    expect(analyseHang(2, [record(0), record(1, 7, "send")]).culprits).toEqual([]);
    expect(analyseHang(0, [])).toMatchObject({ culprits: [] });
    expect(() => analyseHang(1, [record(1)])).toThrow("rank 1 of 1");
  });
});

describe("the heat map", () => {
  it("shows the half percent of hosts that are a tenth slower, and only those", () => {
    const rng = createRng(5);
    const hosts = 1536;
    const slow = new Set(Array.from({ length: 8 }, () => rng.integer(hosts)));
    const times = (base: number): Float64Array =>
      Float64Array.from({ length: hosts }, (_, host) => {
        return base * (slow.has(host) ? 1.1 : 1) * (1 + 0.01 * rng.normal());
      });
    const map = heatMap({ forward: times(0.1), backward: times(0.2) });
    // 1 % of noise over 3,072 cells stays under 4.5 deviations; 10 % stands 5 above the line.
    expect(new Set(slowHosts(map))).toEqual(slow);
  });

  it("is drawn with a character for each host", () => {
    const map = heatMap({ forward: [1, 1, 1, 1.3], backward: [2, 2.2, 2, 2] });
    expect(heatMapText(map)).toBe("forward  |   @|\nbackward | =  |");
    expect(slowHosts(map)).toEqual([3, 1]);
    expect(heatMapText(heatMap({}))).toBe("");
    expect(() => heatMap({ a: [1], b: [1, 2] })).toThrow("b: times of 2 hosts, not 1");
    expect(() => heatMap({ a: [0] })).toThrow("a time of 0 s");
  });
});

it("outliers are found whatever the order of the values", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 })), (values) => {
      const found = outliers(values).map((i) => values[i]!);
      const back = outliers(values.toReversed()).map((i) => values.toReversed()[i]!);
      expect(back.toSorted((a, b) => a - b)).toEqual(found.toSorted((a, b) => a - b));
    }),
  );
});
