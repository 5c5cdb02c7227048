/** Runs workloads in ASTRA-sim 2, where ASTRA_SIM names its program for the analytical network. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ChakraWorkload,
  type UniformNetwork,
  astraSimInputs,
  encodeChakra,
} from "@trireme/simulator/chakra";

/** The program; undefined where it is not named. */
export const { ASTRA_SIM: astraSim } = process.env;

/** What it made of a workload. */
export interface AstraSimRun {
  /** When each rank that came to its end did, in seconds. */
  readonly ends: readonly number[];
  /** Operations that its log tells the end of; 0 where it was not asked to tell. */
  readonly operations: number;
  /** CPU seconds of the program, reading the traces included. */
  readonly seconds: number;
}

/** Runs a workload. `log`: its log then has every operation. Throws what it printed when it fails. */
export function runInAstraSim(
  workload: ChakraWorkload,
  network: UniformNetwork,
  log: boolean,
): AstraSimRun {
  const folder = mkdtempSync(join(tmpdir(), "trireme-astra-sim-"));
  try {
    const prefix = join(folder, "trace");
    workload.traces.forEach((trace, rank) =>
      writeFileSync(`${prefix}.${rank}.et`, encodeChakra(trace)),
    );
    const inputs = astraSimInputs(workload, network);
    const system = JSON.parse(inputs["system-configuration"]) as Record<string, unknown>;
    if (log) system["trace-enabled"] = 1;
    const files = { ...inputs, "system-configuration": JSON.stringify(system) };
    const options = Object.entries(files).map(([option, text]) => {
      writeFileSync(join(folder, option), text);
      return `--${option}=${join(folder, option)}`;
    });
    const logs = join(folder, "log");
    options.push(`--workload-configuration=${prefix}`, `--logging-folder=${logs}`);
    // The shell's `times` tells what its children took.
    const ran = spawnSync("bash", ["-c", '"$@"; times >&2', "bash", astraSim!, ...options], {
      encoding: "utf8",
      maxBuffer: 2 ** 30,
    });
    const ends = [...ran.stdout.matchAll(/sys\[\d+\] finished, (\d+) cycles/g)];
    // It may break down taking itself apart when all is over.
    if (ends.length < workload.traces.length) {
      throw new Error(`ASTRA-sim stopped at ${ends.length} ranks: ${ran.stderr.slice(-1000)}`);
    }
    const times = ran.stderr
      .trim()
      .split("\n")
      .at(-1)!
      .matchAll(/(\d+)m([\d.]+)s/g);
    const lines = log
      ? readdirSync(logs).flatMap((file) => readFileSync(join(logs, file), "utf8").split("\n"))
      : [];
    return {
      ends: ends.map((found) => Number(found[1]) / 1e9),
      operations: lines.filter((line) => line.includes("callback,sys->id=")).length,
      seconds: [...times].reduce(
        (sum, [, minutes, s]) => sum + 60 * Number(minutes) + Number(s),
        0,
      ),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
