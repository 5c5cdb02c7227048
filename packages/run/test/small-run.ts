/** A run that resolves, as a file would say it; tests change one thing at a time. */
export const smallRun = {
  name: "small",
  model: { layers: 4, hidden: 128, heads: 4, context: 64 },
  plan: { pp: 2, dp: 2, globalBatch: 8, microbatch: 2 },
  data: { path: "texts", tokenizer: "byte" },
  optimizer: { learningRate: 1e-3, warmup: 2 },
  steps: 10,
} as const;

export const smallYaml = `name: small
model:
  layers: 4
  hidden: 128
  heads: 4
  context: 64
plan:
  pp: 2
  dp: 2
  globalBatch: 8
  microbatch: 2
data:
  path: texts
  tokenizer: byte
optimizer:
  learningRate: 1e-3
  warmup: 2
steps: 10
`;
