import { byteTokenizer, createLoader, keyedPermutation, tokenize } from "@trireme/dataloader";

const count = 1_000_003;
const at = keyedPermutation(count, 7);

// 16 MiB of tokens in samples of 4,096: the order is what is measured, the copy is there too.
const text = "All that is gold does not glitter, not all those who wander are lost.\n".repeat(
  240_000,
);
const dataset = tokenize([{ name: "text", text }], byteTokenizer());
const loader = createLoader({
  dataset,
  sequence: 4096,
  globalBatch: 64,
  dp: 8,
  microbatch: 2,
  seed: 1,
});
let step = 0;

export const benchmarks = [
  {
    id: "dataloader/permutation",
    what: "positions of a keyed permutation of a million items evaluated in a second",
    unit: "items/s",
    better: "higher",
    target: 2e6,
    amount: count,
    time: (): void => {
      for (let i = 0; i < count; i++) at(i);
    },
  },
  {
    id: "dataloader/seek",
    what: "time to the batch of any step: 64 samples of 4,096 tokens, a thousand million steps in",
    unit: "s",
    better: "lower",
    target: 5e-3,
    time: (): void => {
      loader.batch(1e9 + step++);
    },
  },
];
