/** `trireme simulate`: one step on virtual time, its figures, its picture and its trace. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatPercent } from "@trireme/core";
import type { StepSimulation } from "@trireme/simulator";
import { toChromeTrace } from "@trireme/timeline";
import { hostOf } from "@trireme/topology";
import type { CommandArguments } from "../arguments.ts";
import type { Parts } from "../composition.ts";
import { InputError } from "../input-error.ts";
import { loadRun } from "../load-run.ts";
import { priceRun } from "../price-run.ts";
import { type Field, fields, heading } from "../report/fields.ts";
import { memoryFields } from "../report/memory-fields.ts";
import { picture } from "../report/picture.ts";
import { runFields } from "../report/run-fields.ts";
import { speedFields } from "../report/speed-fields.ts";
import { makeRunDirectory } from "../run-directory.ts";
import type { Terminal } from "../terminal.ts";

/** Simulates a step, prints it and writes its trace. */
export async function simulateCommand(
  args: CommandArguments,
  terminal: Terminal,
  parts: Parts,
): Promise<void> {
  const loaded = await loadRun(args, parts, { withTexts: false });
  // A folder that cannot be written to is refused before anything is timed.
  if (args.out !== undefined) makeRunDirectory(loaded.run.name, args.out);
  const { run, options, measured } = await priceRun(loaded, parts);
  // The closed form says in one line why a plan cannot run, and what memory it takes.
  const feasible = parts.estimate(options);
  if (!feasible.ok) {
    if (args.json) terminal.out(`${JSON.stringify(feasible, undefined, 2)}\n`);
    throw new InputError([`${run.name}: ${feasible.reason}`]);
  }
  const simulation = parts.simulateStep(options);
  const { timeline, ...figures } = { ...simulation, memory: feasible.memory };
  const trace = writeTrace(makeRunDirectory(run.name, args.out), run.name, simulation);
  if (args.json) {
    const { name, fingerprint } = run;
    terminal.out(`${JSON.stringify({ name, fingerprint, ...figures, trace }, undefined, 2)}\n`);
    return;
  }
  const { memory } = hostOf(run.cluster, 0).accelerator;
  const drawn = picture(terminal, timeline);
  terminal.out(heading(terminal, `${run.name}: one step, simulated`).trimStart());
  terminal.out(fields(terminal, runFields({ ...loaded, run })));
  terminal.out(heading(terminal, "result"));
  terminal.out(
    fields(terminal, [...speedFields(run, simulation, measured), ...waitingFields(simulation)]),
  );
  terminal.out(fields(terminal, memoryFields(feasible.memory, memory, run.plan)));
  terminal.out(heading(terminal, drawn.title));
  terminal.out(drawn.text);
  terminal.out("\n");
  terminal.out(
    fields(terminal, [{ label: "trace", value: `${trace} (ui.perfetto.dev, speedscope.app)` }]),
  );
}

/** What only a simulation shows. */
function waitingFields(s: StepSimulation): readonly Field[] {
  return [
    {
      label: "bubble",
      value: formatPercent(s.bubble),
      note: "neither computing nor communicating",
    },
    {
      label: "exposed",
      value: formatPercent(s.exposedCommunication),
      note: "communication that no computing hides",
    },
  ];
}

function writeTrace(directory: string, name: string, simulation: StepSimulation): string {
  const path = join(directory, "trace.json");
  try {
    writeFileSync(path, toChromeTrace(simulation.timeline, { name: `${name}, simulated` }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InputError([`cannot write ${path}: ${why}`], { cause: error });
  }
  return path;
}
