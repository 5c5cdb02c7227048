/**
 * What reading and writing torchtitan's TOML have in common (torchtitan/config/job_config.py):
 * its names for models and schedules, and how it shares layers out among pipeline stages.
 */

/** Presets by torchtitan's `model.name` and `model.flavor`. */
export const flavors: Readonly<Record<string, string>> = {
  "llama3 8B": "llama3-8b",
  "llama3 70B": "llama3-70b",
  "llama3 405B": "llama3-405b",
  "llama4 17bx16e": "llama4-scout",
  "llama4 17bx128e": "llama4-maverick",
  "deepseek_v3 671B": "deepseek-v3",
  "qwen3 0.6B": "qwen3-0.6b",
  "qwen3 1.7B": "qwen3-1.7b",
  "qwen3 4B": "qwen3-4b",
  "qwen3 8B": "qwen3-8b",
  "qwen3 14B": "qwen3-14b",
  "qwen3 32B": "qwen3-32b",
};

/** Schedules by `parallelism.pipeline_parallel_schedule`. */
export const pipelineSchedules: Readonly<Record<string, "1f1b" | "gpipe" | "interleaved">> = {
  "1F1B": "1f1b",
  GPipe: "gpipe",
  Interleaved1F1B: "interleaved",
};

/**
 * Layers of each stage: embedding and output count as some layers, and the first stages take what
 * does not divide evenly.
 */
export function stageLayersOf(
  layers: number,
  stages: number,
  embedding: number,
  output: number,
): readonly number[] {
  const slots = layers + embedding + output;
  return Array.from({ length: stages }, (_, stage) => {
    const share = Math.floor(slots / stages) + (stage < slots % stages ? 1 : 0);
    return share - (stage === 0 ? embedding : 0) - (stage === stages - 1 ? output : 0);
  });
}

/** The least numbers of layers that embedding and output must count as for these stages, if any do. */
export function stageWeights(
  stageLayers: readonly number[],
): { readonly embedding: number; readonly output: number } | undefined {
  const layers = stageLayers.reduce((a, b) => a + b, 0);
  const stages = stageLayers.length;
  const wanted = stageLayers.join();
  for (let sum = 0; sum <= 2 * (Math.max(...stageLayers) + 1); sum++) {
    for (let embedding = 0; embedding <= sum; embedding++) {
      const output = sum - embedding;
      if (stageLayersOf(layers, stages, embedding, output).join() === wanted) {
        return { embedding, output };
      }
    }
  }
  return undefined;
}
