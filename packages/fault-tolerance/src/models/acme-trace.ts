/**
 * The Acme job trace (InternLM/AcmeTrace, CC-BY-4.0), read strictly: a file that is not exactly of the
 * published form is refused with its line. The trace itself is the user's to bring.
 */
import { TriremeError, type Seconds, nearestName } from "@trireme/core";

/** How a job ended. */
export type AcmeState = "COMPLETED" | "CANCELLED" | "FAILED" | "TIMEOUT" | "NODE_FAIL";

const states: readonly AcmeState[] = ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"];

export interface AcmeJob {
  readonly id: string;
  readonly user: string;
  readonly hosts: number;
  readonly gpus: number;
  readonly cpus: number;
  /** Kind of work: Pretrain, Evaluation, Other, and so on, as the trace has it. */
  readonly type: string;
  readonly state: AcmeState;
  /** Seconds since 1970 in UTC, as all times here. */
  readonly submitted: Seconds;
  readonly started: Seconds;
  readonly ended: Seconds;
  /** Kalos: when the job failed and when it was stopped, where the trace says so. */
  readonly failed?: Seconds;
  readonly stopped?: Seconds;
  readonly duration: Seconds;
  readonly queued: Seconds;
  /** duration × GPUs, as the trace has it. */
  readonly gpuSeconds: number;
}

const seren =
  "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time";
const kalos =
  "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time";

/**
 * The jobs of `trace_seren.csv` or `trace_kalos.csv`, told apart by the header, one by one.
 * @param text The file, or its lines (without their ends) as they come.
 * @throws TriremeError "ACME_TRACE" with the line, the column and the value.
 */
export function* readAcmeTrace(text: string | Iterable<string>): Generator<AcmeJob> {
  let columns: readonly string[] | undefined;
  let line = 0;
  for (const row of typeof text === "string" ? linesOf(text) : text) {
    line++;
    if (columns === undefined) columns = headerOf(row);
    else if (row !== "") yield jobOf(row, columns, line);
    else throw refusal(line, "row", row, "no row is empty");
  }
  if (columns === undefined) throw refusal(1, "header", "", `use "${seren}"`);
}

/** Lines of a text, without their ends; the end of the last may be left out. */
function* linesOf(text: string): Generator<string> {
  let from = text.startsWith("\uFEFF") ? 1 : 0;
  while (from < text.length) {
    const end = text.indexOf("\n", from);
    const to = end < 0 ? text.length : end;
    yield text.slice(from, text[to - 1] === "\r" ? to - 1 : to);
    from = to + 1;
  }
}

function headerOf(row: string): readonly string[] {
  if (row === seren || row === kalos) return row.split(",");
  const known = new Set(kalos.split(","));
  const odd = row.split(",").find((name) => !known.has(name));
  const near = odd === undefined ? undefined : nearestName(odd, known);
  const hint = near === undefined ? "" : ` (is "${odd}" meant to be "${near}"?)`;
  throw refusal(1, "header", row, `it is neither Seren's nor Kalos's, in order${hint}`);
}

function jobOf(row: string, columns: readonly string[], line: number): AcmeJob {
  const fields = row.split(",");
  if (fields.length !== columns.length) {
    throw refusal(line, "row", row, `it has ${fields.length} fields, not ${columns.length}`);
  }
  const field = (name: string): string => fields[columns.indexOf(name)] ?? "";
  const text = (name: string): string => {
    const value = field(name);
    if (value === "" || value.includes('"')) throw refusal(line, name, value, "use a plain name");
    return value;
  };
  const count = (name: string): number => {
    const value = field(name);
    if (!/^\d+$/.test(value) || !Number.isSafeInteger(Number(value))) {
      throw refusal(line, name, value, "use an integer from 0 up");
    }
    return Number(value);
  };
  const amount = (name: string): number => {
    const value = field(name);
    if (!/^\d+(\.\d+)?$/.test(value)) throw refusal(line, name, value, "use a number from 0 up");
    return Number(value);
  };
  const time = (name: string): Seconds => secondsOf(field(name), line, name);
  const state = states.find((each) => each === field("state"));
  if (state === undefined) {
    throw refusal(line, "state", field("state"), `use one of ${states.join(", ")}`);
  }
  const failed = field("fail_time") === "" ? undefined : time("fail_time");
  const stopped = field("stop_time") === "" ? undefined : time("stop_time");
  const [started, ended] = [time("start_time"), time("end_time")];
  if (ended < started) throw refusal(line, "end_time", field("end_time"), "it is before the start");
  return {
    id: text("job_id"),
    user: text("user"),
    hosts: count("node_num"),
    gpus: count("gpu_num"),
    cpus: count("cpu_num"),
    type: text("type"),
    state,
    submitted: time("submit_time"),
    started,
    ended,
    ...(failed !== undefined && { failed }),
    ...(stopped !== undefined && { stopped }),
    duration: amount("duration"),
    queued: amount("queue"),
    gpuSeconds: amount("gpu_time"),
  };
}

const form = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)([+-])(\d\d):(\d\d)$/;

function secondsOf(value: string, line: number, name: string): Seconds {
  const parts = form.exec(value);
  const [year, month, day, hour, minute, second] = (parts ?? []).slice(1, 7).map(Number);
  const utc = Date.UTC(year ?? 0, (month ?? 0) - 1, day, hour, minute, second);
  // A day or an hour that does not exist runs over into the next one.
  if (!parts || !new Date(utc).toISOString().startsWith(value.slice(0, 19).replace(" ", "T"))) {
    throw refusal(line, name, value, "use a time such as 2023-03-01 00:18:22+08:00");
  }
  const offset = Number(parts[8]) * 3600 + Number(parts[9]) * 60;
  return utc / 1000 - (parts[7] === "-" ? -offset : offset);
}

function refusal(line: number, column: string, value: string, rule: string): TriremeError {
  const short = value.length > 60 ? `${value.slice(0, 60)}…` : value;
  return new TriremeError("ACME_TRACE", `line ${line}, ${column} "${short}": ${rule}`);
}
