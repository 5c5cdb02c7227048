/** The text that a run asks for when training ends. */
import type { Tokenizer } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { Runtime } from "@trireme/runtime";

/** Prompt and continuation; undefined where the run asks for none or the runtime has no weights. */
export async function generateSample(
  run: ResolvedRun,
  runtime: Runtime,
  tokenizer: Tokenizer,
): Promise<string | undefined> {
  const { sample } = run;
  if (sample === undefined || runtime.generate === undefined) return undefined;
  const prompt = Int32Array.from(tokenizer.encode(sample.prompt));
  const { tokens, temperature, seed } = sample;
  const generated = await runtime.generate({ prompt, tokens, temperature, seed });
  return sample.prompt + tokenizer.decode(generated);
}
