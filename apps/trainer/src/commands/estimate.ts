/** `trireme estimate`: one step in closed form, by cause. */
import { formatEnergy, formatPercent, formatPower, formatSeconds } from "@trireme/core";
import { type Breakdown, type Cost, stepEnergy } from "@trireme/cost-model";
import type { ResolvedRun } from "@trireme/run";
import { hostOf } from "@trireme/topology";
import type { CommandArguments } from "../arguments.ts";
import type { Parts } from "../composition.ts";
import { InputError } from "../input-error.ts";
import { loadRun } from "../load-run.ts";
import { priceRun } from "../price-run.ts";
import { type Field, fields, heading } from "../report/fields.ts";
import { memoryFields } from "../report/memory-fields.ts";
import { runFields } from "../report/run-fields.ts";
import { speedFields } from "../report/speed-fields.ts";
import type { Terminal } from "../terminal.ts";

/** Estimates a step and prints it. */
export async function estimateCommand(
  args: CommandArguments,
  terminal: Terminal,
  parts: Parts,
): Promise<void> {
  const loaded = await loadRun(args, parts, { withTexts: false });
  const { run, options, measured } = await priceRun(loaded, parts);
  const result = parts.estimate(options);
  if (args.json) {
    const { name, fingerprint } = run;
    terminal.out(`${JSON.stringify({ name, fingerprint, ...result }, undefined, 2)}\n`);
  }
  if (!result.ok) throw new InputError([`${run.name}: ${result.reason}`]);
  if (args.json) return;
  terminal.out(heading(terminal, `${run.name}: one step, estimated`).trimStart());
  terminal.out(fields(terminal, runFields({ ...loaded, run })));
  terminal.out(heading(terminal, "estimate"));
  terminal.out(fields(terminal, speedFields(run, result, measured)));
  terminal.out(heading(terminal, "where the step goes"));
  terminal.out(fields(terminal, breakdownFields(result)));
  const { accelerator } = hostOf(run.cluster, 0);
  if (accelerator.kind !== "cpu") {
    terminal.out(heading(terminal, "energy"));
    terminal.out(fields(terminal, energyFields(run, result)));
  }
  terminal.out(heading(terminal, "memory"));
  terminal.out(fields(terminal, memoryFields(result.memory, accelerator.memory, run.plan)));
}

/** Of devices, hosts and site; servers and site as `stepEnergy` assumes them. */
function energyFields({ cluster, plan }: ResolvedRun, cost: Cost): readonly Field[] {
  const { device, site, energyPerToken } = stepEnergy({ cost, plan, cluster });
  return [
    { label: "a device", value: formatPower(device), note: "mean over the step" },
    { label: "site", value: formatPower(site), note: "devices, servers, cooling" },
    { label: "a token", value: formatEnergy(energyPerToken), note: "of the site's energy" },
  ];
}

const causes: readonly (readonly [cause: keyof Breakdown, label: string, note: string])[] = [
  ["compute", "compute", "kernels of the busiest pipeline rank, recomputation included"],
  ["tensorParallel", "exchange", "exposed collectives of tensor, context and expert parallelism"],
  ["pointToPoint", "sends", "exposed sends between stages"],
  ["bubble", "bubble", "waiting for other stages"],
  ["dataParallel", "data", "exposed reduction of gradients, gathering of weights"],
  ["optimizer", "optimizer", "the update"],
];

function breakdownFields({ breakdown, step }: Cost): readonly Field[] {
  const lines = causes.map(([cause, label, note]) => ({
    label,
    value: timeAndShare(breakdown[cause], step),
    note,
  }));
  return [...lines, { label: "step", value: timeAndShare(step, step), note: "their sum" }];
}

function timeAndShare(seconds: number, step: number): string {
  // A sum of floats leaves a hair where there is nothing.
  const time = seconds < step * 1e-9 ? 0 : seconds;
  return `${formatSeconds(time).padStart(9)} ${formatPercent(seconds / step).padStart(8)}`;
}
