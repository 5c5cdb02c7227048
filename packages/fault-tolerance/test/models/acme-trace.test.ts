import {
  type AcmeJob,
  drawFailure,
  readAcmeTrace,
  summariseTrace,
  traceFailures,
  traceLaw,
} from "@trireme/fault-tolerance";
import { createRng } from "@trireme/core";
import { describe, expect, it } from "vitest";

const seren =
  "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time";
const kalos =
  "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time";
/** The two rows that the trace's authors show of Seren (InternLM/AcmeTrace, CC-BY-4.0). */
const rows = [
  "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0",
  "5778469,u5907,1,8,128,Other,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,2023-03-01 01:09:04+08:00,2693,13,21544.0",
];
const read = (...lines: string[]): AcmeJob[] => [...readAcmeTrace(lines.join("\n"))];
const edited = (from: string, to: string) => (): AcmeJob[] =>
  read(seren, rows[0]!.replace(from, to));

describe("the reader of Acme's trace", () => {
  it("reads Seren's rows, with times in seconds of UTC", () => {
    const [first, second] = read(seren, ...rows);
    expect(first).toEqual({
      id: "5778432",
      user: "u5907",
      hosts: 1,
      gpus: 8,
      cpus: 128,
      type: "Other",
      state: "FAILED",
      submitted: Date.parse("2023-02-28T16:18:22Z") / 1000,
      started: Date.parse("2023-02-28T16:18:54Z") / 1000,
      ended: Date.parse("2023-02-28T16:20:51Z") / 1000,
      duration: 117,
      queued: 32,
      gpuSeconds: 936,
    });
    expect(second!.state).toBe("COMPLETED");
  });

  it("reads Kalos's rows, whose fail and stop times may be empty, and Windows line ends", () => {
    const row = (fail: string): string =>
      `1,u,2,16,64,512,256,Pretrain,FAILED,2023-05-01 00:00:00+08:00,2023-05-01 00:00:10+08:00,2023-05-01 01:00:10+08:00,${fail},,3600,10,57600`;
    const jobs = [
      ...readAcmeTrace(`\uFEFF${kalos}\r\n${row("")}\r\n${row("2023-05-01 00:50:10+08:00")}\r\n`),
    ];
    expect(jobs.length).toBe(2);
    expect("failed" in jobs[0]!).toBe(false);
    expect(jobs[1]!.failed! - jobs[1]!.started).toBe(3000);
    expect(traceLaw(jobs)).toEqual({ kind: "trace", times: [3000, 3600] });
  });

  it("takes lines as they come", () => {
    expect([...readAcmeTrace([seren, rows[0]!])].length).toBe(1);
  });

  it("refuses anything else with its line, column and rule", () => {
    expect(() => read("")).toThrow('line 1, header "": use "job_id,');
    expect(() => read("a,b", rows[0]!)).toThrow('line 1, header "a,b": it is neither');
    expect(() => read(seren.replace("gpu_num", "gpus_num"))).toThrow('meant to be "gpu_num"');
    expect(edited("FAILED", "BROKEN")).toThrow('line 2, state "BROKEN": use one of COMPLETED');
    expect(edited("+08:00", "")).toThrow("line 2, submit_time");
    expect(edited("2023-03-01 00:18:22", "2023-02-30 00:18:22")).toThrow("use a time such as");
    expect(edited("2023-03-01 00:20:51", "2023-03-01 00:10:51")).toThrow("before the start");
    expect(edited(",8,", ",-8,")).toThrow('gpu_num "-8": use an integer from 0 up');
    expect(edited(",117,", ",x,")).toThrow('duration "x"');
    expect(edited("u5907", "")).toThrow('user "": use a plain name');
    expect(edited(",936.0", "")).toThrow("it has 12 fields, not 13");
    expect(() => read(seren, rows[0]!, "", rows[1]!)).toThrow("line 3, row");
  });
});

describe("a trace law", () => {
  const job = (gpus: number, state: AcmeJob["state"], duration: number): AcmeJob => ({
    id: "1",
    user: "u",
    hosts: 1,
    gpus,
    cpus: 1,
    type: "Other",
    state,
    submitted: 0,
    started: 5,
    ended: 5 + duration,
    duration,
    queued: 5,
    gpuSeconds: gpus * duration,
  });
  const jobs = [
    job(8, "FAILED", 100),
    job(512, "NODE_FAIL", 60),
    job(512, "COMPLETED", 400),
    job(512, "CANCELLED", 40),
    job(0, "FAILED", 1),
  ];

  it("holds the times to failure of the jobs that failed, ascending, by size", () => {
    expect(traceLaw(jobs)).toEqual({ kind: "trace", times: [60, 100] });
    const large = traceLaw(jobs, { gpus: 256 });
    expect(drawFailure(large, createRng(0))).toBe(60);
    expect(traceFailures(jobs).map(({ time, job: { gpus } }) => [time, gpus])).toEqual([
      [65, 512],
      [105, 8],
    ]);
    expect(() => traceLaw(jobs, { gpus: 1000 })).toThrow("no job of 1000 GPUs");
  });

  it("sums the trace up as Acme publishes it", () => {
    const summary = summariseTrace(jobs);
    expect(summary).toMatchObject({ jobs: 4, run: { mean: 150, median: 80 }, meanGpus: 386 });
    expect(summary.jobShare).toEqual({ completed: 0.25, cancelled: 0.25, failed: 0.5 });
    // GPU seconds: 204,800 completed, 20,480 cancelled, 31,520 failed.
    expect(summary.gpuTimeShare.completed).toBeCloseTo(204_800 / 256_800, 12);
    expect(summary.inconsistent).toBe(0);
    expect(summariseTrace([{ ...jobs[0]!, gpuSeconds: 1 }]).inconsistent).toBe(1);
  });
});
