/** A Python with PyTorch, where there is one, and what it makes of a run. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodeSafetensors } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import type { ResolvedRun } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import { nanoGptBatch, rateOf, samples } from "./nano-gpt.ts";
import { peerDirectory } from "./peer-directory.mjs";

const here = dirname(fileURLToPath(import.meta.url));

/** What to do where PyTorch is missing. */
export const torchAdvice =
  "PyTorch not found: set PYTHON, or run pnpm --filter @trireme/engine run peers";

/** $PYTHON or the environment that `pnpm --filter @trireme/engine run peers` makes, if it has PyTorch. */
export function torchPython(): string | undefined {
  const { PYTHON: asked } = process.env;
  const python = asked ?? join(peerDirectory, "python", "bin", "python");
  if (asked === undefined && !existsSync(python)) return undefined;
  try {
    execFileSync(python, ["-c", "import torch"], { stdio: "ignore" });
    return python;
  } catch {
    return undefined;
  }
}

/** What a training by PyTorch gave. */
export interface TorchTraining {
  readonly losses: readonly number[];
  /** Of each step, user and system time of the process. */
  readonly seconds: readonly number[];
  /** Of the first step, before clipping, by name. */
  readonly gradients: ReadonlyMap<string, Float32Array>;
  /** Mean loss of the validation batches at the end; NaN for none. */
  readonly validation: number;
}

/**
 * Trains the first `steps` steps of a run from these weights, on one thread, and measures the loss of
 * `validationBatches` batches that it has not trained on.
 */
export function trainByTorch(
  python: string,
  run: ResolvedRun,
  first: Snapshot,
  steps: number,
  validationBatches = 0,
): TorchTraining {
  const { model, optimizer } = run;
  const directory = mkdtempSync(join(tmpdir(), "trireme-torch-"));
  try {
    const indices = Array.from({ length: steps }, (_, step) => step);
    const setting = {
      layers: model.layers,
      hidden: model.hidden,
      heads: model.heads,
      vocab: model.vocab,
      context: model.context,
      epsilon: model.normEpsilon,
      beta1: optimizer.beta1,
      beta2: optimizer.beta2,
      adamEpsilon: optimizer.epsilon,
      weightDecay: optimizer.weightDecay,
      clip: optimizer.clip,
      rates: indices.map((step) => rateOf(run, step)),
      samples,
      threads: 1,
    };
    writeFileSync(join(directory, "setting.json"), JSON.stringify(setting));
    writeFileSync(join(directory, "model.safetensors"), wholeModel(first));
    for (const [part, count] of [
      ["train", steps],
      ["validation", validationBatches],
    ] as const) {
      const batches = Array.from({ length: count }, (_, step) => nanoGptBatch(step, part).tokens);
      const bytes = batches.map((tokens) => new Uint8Array(tokens.buffer));
      writeFileSync(join(directory, `${part}.i32`), Buffer.concat(bytes));
    }
    // Whatever library makes the products, it gets the one thread too.
    const env = { ...process.env, OMP_NUM_THREADS: "1", MKL_NUM_THREADS: "1" };
    execFileSync(python, [join(here, "nano-gpt.py"), directory], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const result = readFileSync(join(directory, "result.json"), "utf8");
    const gradients = readFileSync(join(directory, "gradients.safetensors"));
    return {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nano-gpt.py writes just this
      ...(JSON.parse(result) as Omit<TorchTraining, "gradients">),
      gradients: new Map(
        decodeSafetensors(gradients).tensors.map(({ name, data }) => [
          name,
          new Float32Array(Uint8Array.from(data).buffer),
        ]),
      ),
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
