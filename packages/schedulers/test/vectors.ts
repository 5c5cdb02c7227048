/** Reads the committed vectors; see `vectors/README.md`. */
import { readFileSync } from "node:fs";

export interface SimulatedTimes {
  readonly makespan: number;
  readonly busy: readonly number[];
  readonly idle: readonly number[];
  readonly idle_in: readonly number[];
  readonly peak: readonly number[];
}

export interface TorchVector {
  readonly schedule: string;
  readonly P: number;
  readonly V: number;
  readonly M: number;
  readonly order: Readonly<Record<string, readonly string[]>>;
  readonly sim: Readonly<Record<"F1I1W1" | "F2I2W1" | "F1I1W1c1", SimulatedTimes>>;
}

export interface SailVector {
  readonly schedule: string;
  readonly P: number;
  readonly V: number;
  readonly M: number;
  readonly order: Readonly<Record<string, string>>;
  readonly sim: SimulatedTimes;
  readonly stable_pattern?: readonly (readonly number[])[];
}

export interface DualPipeVector {
  readonly P: number;
  readonly M: number;
  readonly order: Readonly<Record<string, string>>;
  readonly sim_F1_I1_W1_FB3: Pick<SimulatedTimes, "makespan" | "idle" | "peak">;
  readonly sim_FB2: Pick<SimulatedTimes, "makespan" | "idle" | "peak">;
}

function read(file: string): string {
  return readFileSync(new URL(`vectors/${file}`, import.meta.url), "utf8");
}

export const torchVectors: readonly TorchVector[] = JSON.parse(read("torch_schedules.json"));
export const sailVectors: readonly SailVector[] = JSON.parse(read("sail_zb_schedules.json"));
export const dualPipeVectors: readonly DualPipeVector[] = JSON.parse(read("dualpipe.json"));
