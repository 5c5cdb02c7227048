/**
 * The same step in other simulators: ASTRA_SIM names ASTRA-sim 2's program for its analytical network
 * without congestion, SIMAI that of SimAI's analytical mode, SIMAI_ROOT the checkout that it reads its
 * tables from. Without them these tests are skipped. Each prints a row of a table in
 * docs/run-in-astra-sim.md.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { playableStep } from "@trireme/simulator";
import {
  playText,
  playWorkload,
  printTextWorkload,
  toChakra,
  toTextWorkload,
} from "@trireme/simulator/chakra";
import { defineCluster } from "@trireme/topology";
import { type PlanOptions, defineModel, definePlan } from "@trireme/workload";
import { expect, test } from "vitest";
import { astraSim, runInAstraSim } from "./in-astra-sim.ts";

const { SIMAI: simai, SIMAI_ROOT: simaiRoot } = process.env;
const cluster = defineCluster({ host: "dgx-h100", hosts: 4 });
const size = { layers: 8, vocab: 32_000, context: 2048 };
const dense = defineModel({ ...size, hidden: 4096, heads: 32 });
const mixture = defineModel({
  ...size,
  hidden: 2048,
  heads: 16,
  experts: { count: 8, active: 2, ffn: 8192 },
});
const network = { bandwidth: 50e9, latency: 500e-9 };

interface Case {
  readonly name: string;
  readonly options: PlanOptions;
  readonly experts?: boolean;
}

const cases: readonly Case[] = [
  { name: "dp 8", options: { dp: 8, globalBatch: 16, zero: 1 } },
  { name: "tp 8", options: { tp: 8, globalBatch: 4 } },
  { name: "tp 8, sequence-parallel", options: { tp: 8, globalBatch: 4, sequenceParallel: true } },
  { name: "pp 4", options: { pp: 4, globalBatch: 8 } },
  { name: "pp 4, sends overlap", options: { pp: 4, globalBatch: 8, overlapPointToPoint: true } },
  {
    name: "dp 2, tp 2, pp 4",
    options: {
      dp: 2,
      tp: 2,
      pp: 4,
      globalBatch: 16,
      zero: 1,
      sequenceParallel: true,
      overlapPointToPoint: true,
    },
  },
  {
    name: "dp 4, ZeRO-3, overlaps",
    options: { dp: 4, globalBatch: 16, zero: 3, overlapDataParallel: true },
  },
  {
    name: "pipelines of 1 and 2",
    options: {
      globalBatch: 8,
      pipelines: [
        [{ tp: 1, layers: 8 }],
        [
          { tp: 1, layers: 4 },
          { tp: 1, layers: 4 },
        ],
      ],
    },
  },
  { name: "dp 8, ep 8", options: { dp: 8, ep: 8, globalBatch: 16 }, experts: true },
];

function row(...cells: readonly (string | number)[]): void {
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

for (const { name, options, experts } of cases) {
  const model = experts === true ? mixture : dense;
  const plan = definePlan(model, options);

  test.skipIf(astraSim === undefined)(
    `ASTRA-sim 2 runs the traces of ${name} to their end, in our time`,
    () => {
      const workload = toChakra(playableStep({ model, plan, cluster, unfold: true }).program);
      const { ends, operations } = runInAstraSim(workload, network, true);
      expect(ends).toHaveLength(workload.traces.length);
      const ours = playWorkload(workload, { network, communications: 1 });
      expect(operations).toBe(ours.operations);
      const theirs = Math.max(...ends);
      // Its computations take whole microseconds.
      expect(Math.abs(ours.time / theirs - 1)).toBeLessThan(2e-4);
      const off = ((ours.time / theirs - 1) * 100).toFixed(4);
      row(
        name,
        workload.traces.length,
        operations,
        `${(theirs * 1e3).toFixed(3)} ms`,
        `${(ours.time * 1e3).toFixed(3)} ms`,
        `${off} %`,
      );
    },
  );

  // Weights gathered for every layer and pipelines that differ are beyond the form.
  test.skipIf(simai === undefined || plan.zero === 3 || plan.pipelines !== undefined)(
    `SimAI takes the text workload of ${name} line by line`,
    () => {
      const workload = toTextWorkload({ model, plan, cluster });
      const folder = mkdtempSync(join(tmpdir(), "trireme-simai-"));
      mkdirSync(join(folder, "results"));
      symlinkSync(
        join(simaiRoot!, "astra-sim-alibabacloud"),
        join(folder, "astra-sim-alibabacloud"),
      );
      writeFileSync(join(folder, "workload.txt"), printTextWorkload(workload));
      const gpus = ["-g", String(workload.allGpus), "-g_p_s", "8", "-g_type", "H100"];
      const network8 = ["-nv", "360", "-nic", "48.5", "-n_p_s", "8"];
      const ran = spawnSync(simai!, ["-w", "workload.txt", "-r", "ours-", ...gpus, ...network8], {
        cwd: folder,
        encoding: "utf8",
      });
      expect(ran).toMatchObject({ status: 0 });
      const table = readFileSync(join(folder, "results", "ours-EndToEnd.csv"), "utf8")
        .trim()
        .split("\n");
      // Two lines of totals and the names of columns stand above those of the workload.
      expect(table.length - 3).toBe(workload.layers.length);
      const [dataParallel, , tensor, expert, , bubble, computing] = table[1]!
        .split(", ")
        .slice(1)
        .map((cell) => Number.parseFloat(cell) / 1e6);
      const passes = workload.layers.flatMap((l) => [l.forward, l.inputGradient, l.weightGradient]);
      const own = passes.reduce((sum, { compute }) => sum + compute, 0);
      // It prints whole microseconds of each line's nanoseconds.
      expect(Math.abs(computing! / own - 1)).toBeLessThan(1e-3);
      const communication = dataParallel! + tensor! + expert!;
      const { time } = playText(workload, cluster);
      row(
        name,
        workload.layers.length,
        ...[computing!, own, communication, bubble!, time].map((s) => `${(s * 1e3).toFixed(1)} ms`),
      );
    },
  );
}
