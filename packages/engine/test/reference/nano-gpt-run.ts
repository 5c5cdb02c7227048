/**
 * nanoGPT's CPU setting to its end, 2,000 steps under its learning-rate rule, here and by a plain
 * PyTorch loop from the same weights on the same batches: training losses on the way and the loss of
 * text that neither has seen. Minutes of computing.
 *
 *     pnpm --filter @trireme/engine nano-gpt [wasm|fused|native] [steps]
 */
import { embeddedRuntime } from "@trireme/engine";
import type { KernelChoice } from "@trireme/run";
import { takeSnapshot } from "../small-run.ts";
import { nanoGpt, nanoGptBatch, rateOf } from "./nano-gpt.ts";
import { torchAdvice, torchPython, trainByTorch } from "./torch.ts";

const choices: readonly KernelChoice[] = ["wasm", "fused", "native"];
const [kernels = "wasm", count = "2000"] = process.argv.slice(2);
const choice = choices.find((name) => name === kernels);
const steps = Number(count);
if (choice === undefined || !(Number.isInteger(steps) && steps > 0)) {
  throw new Error(
    `${kernels} ${count}: must be one of ${choices.join(", ")}, and a number of steps`,
  );
}

/** Batches of the last tenth of the text, which is not trained on. */
const validationBatches = 50;
/** Training losses are told as means over so many steps, up to each of these. */
const window = 100;
const ends = [100, 500, 1000, 1500, 2000].filter((end) => end < steps).concat(steps);

const run = nanoGpt({ kernels: choice });
const runtime = embeddedRuntime();
await runtime.start(run);
const first = await takeSnapshot(runtime);
const losses: number[] = [];
const begin = process.cpuUsage();
for (let step = 0; step < steps; step++) {
  const batch = nanoGptBatch(step);
  losses.push((await runtime.step({ step, batch, learningRate: rateOf(run, step) })).loss);
}
const { user, system } = process.cpuUsage(begin);
const heldOut: number[] = [];
for (let i = 0; i < validationBatches; i++) {
  heldOut.push((await runtime.evaluate(nanoGptBatch(i, "validation"))).loss);
}
await runtime.stop();
const ours = { losses, validation: mean(heldOut), seconds: (user + system) / 1e6 };

const python = torchPython();
if (python === undefined) console.log(torchAdvice);
const torch =
  python === undefined ? undefined : trainByTorch(python, run, first, steps, validationBatches);

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function row(what: string, mine: number, theirs: number | undefined): void {
  const rest = theirs === undefined ? [] : [theirs.toFixed(4), (mine - theirs).toFixed(4)];
  console.log([what.padEnd(24), mine.toFixed(4), ...rest].join("  "));
}

console.log([" ".repeat(24), "ours  ", ...(torch ? ["PyTorch", "difference"] : [])].join("  "));
row("step 0", losses[0]!, torch?.losses[0]);
for (const end of ends) {
  const [mine, theirs] = [losses, torch?.losses].map(
    (values) => values && mean(values.slice(Math.max(0, end - window), end)),
  );
  row(`${Math.min(window, end)} steps up to ${end}`, mine!, theirs);
}
row("validation at the end", ours.validation, torch?.validation);
if (torch !== undefined) {
  const apart = losses.findIndex((loss, step) => Math.abs(loss - torch.losses[step]!) > 1e-3);
  const seconds = torch.seconds.reduce((sum, s) => sum + s, 0);
  console.log(`CPU seconds: ours ${ours.seconds.toFixed(1)}, PyTorch ${seconds.toFixed(1)}`);
  console.log(`first step whose losses differ by 0.001: ${apart < 0 ? "none" : apart}`);
}
