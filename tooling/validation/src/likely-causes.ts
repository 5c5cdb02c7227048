/** What is most likely behind the rows that are furthest off, where something is known of them. */

/** Beginnings or parts of ids, the first that fits. */
const causes: readonly (readonly [RegExp, string])[] = [
  [
    /^mbcard-.*(peft|sft)/,
    "a functional run, not tuned: bound by launches, of adapters around each projection among them",
  ],
  [
    /^mlperf4\.0.*(eos_n|xd670.*_n2|lcc-8).*lora/,
    "bound by launches: recorded in graphs, a round later, the same layout takes a sixth less",
  ],
  [
    /^mlperf5\.0.*(tyche|gb200).*lora/,
    "first software for GB200: a round later the same layout takes a fifth less",
  ],
  [
    /^mlperf5\.1-nebius.*lora/,
    "4-bit products of few rows: another submitter's 8-bit run of the larger layout is faster",
  ],
  [
    /^mlperf5\.1.*(b200|b300|xe9[67]|g894|sr[67]80|as-|sys-).*lora/,
    "kernels of a later round: the one before took a sixth longer",
  ],
  [
    /^mlperf4\.[01].*(x4|4h100).*lora/,
    "Transformer Engine gathers 8-bit operands: priced in 16, and shown where nothing hides it",
  ],
  [
    /^mlperf4\.[01].*(h100|eos|nhr|tnhr).*lora/,
    "the script moves power to the multiprocessors (VBOOST_VALUE 1), which clock higher",
  ],
  [
    /^mlperf5.*(mi3\d\dx|mi350x|d75t|aax2|a8a).*lora/,
    "how many layers AMD's script computes again is known of some of its parts",
  ],
  [/^automodel-.*lora/, "whether activations were checkpointed is not told: all are taken to be"],
  [/^mbridge-25\.09-qwen3-235b-.*h100/, "release 25.11 runs the same layout in 20.8 s"],
  [/^mbridge-25\.09-qwen3-30b-.*b200-8/, "release 25.11 takes 28.2 s for the same layout"],
  [/^mbcard-(?!.*(performance|weak_scaling))/, "a functional check, not tuned, by its own words"],
  [/^megascale-175b-megascale/, "sliding windows of a width that is not said, and LAMB"],
  [
    /^mbridge-25\.11-qwen3-30b-a3b-.*(h100|b200-8)/,
    "release 25.09 ran the same layout in half the time",
  ],
  [/^mbridge-26\.02-qwen3-30b-a3b-.*h100/, "release 26.02.01 ran the same layout in 28.9 s"],
  [
    /^mbskill-moonlight/,
    "one microbatch a step: bound by launches, of hooks and the optimizer too, which are not counted",
  ],
  [
    /^mbridge-.*gpt-oss.*b300-64/,
    "takes 1.2 times what GB300 did half a year before on twice the sequence: not known why",
  ],
  [
    /^mbridge-25\.11-gpt-oss.*gb200/,
    "launches on Grace; its recipe fuses the router and permutations, which no plan describes",
  ],
  [
    /^torchao-llama4-2layer/,
    "two layers of a model in a framework under work; in bf16 it takes nine times what its products take",
  ],
  [
    /^mbskill-qwen3-30b/,
    "ranks wait for each other in front of every exchange (3.1 s of 24.7 in its profile)",
  ],
  [
    /^xtuner-q235-h800-capacity/,
    "experts take up to the capacity, which routing that is not even fills",
  ],
  [
    /^dgxc-v25\.05.*gb200/,
    "first software for GB200: Megatron-Bridge's, half a year later, runs such models a sixth faster",
  ],
  [
    /^dgxc-v25\.05.*deepseek-v3.*h100/,
    "projections of latents are recomputed, activations offloaded: neither is described",
  ],
  [/^mbridge.*deepseek-v3.*b300/, "casts and permutations that later kernels fuse into products"],
  [
    /^mbridge-26\.06-deepseek-v3-.*--2$/,
    "casts and permutations that later kernels fuse into products",
  ],
  [
    /nvfp4|^mlperf5\.1.*(b200|b300|gb300|hsg|tyche)/,
    "transforms, second scales and some layers in 16 bits, beside 4-bit products",
  ],
  [
    /^mbridge-26\.02\.01-llama3-70b-.*gb300.*mxfp8/,
    "chunks are not printed; without them a quarter of the step is bubble",
  ],
  [
    /cloud-tpu-trillium-.*gpt3/,
    "32 GB a chip: weights of 256 shards are gathered three times a microbatch; Google's own recipe gains a quarter by 8 bits, not a factor of two",
  ],
  [
    /^(mbridge|mbcard)-.*nemotron-?3-nano.*gb[23]00/,
    "elementwise kernels of routing and state-space layers written for Hopper, and copies between layouts of tokens",
  ],
  [
    /^dgxc-.*nemotron-h/,
    "scans backward take half as long again as their products (flash-linear-attention on H200), casts before every projection",
  ],
  [/^mcore-golden-gpt/, "a functional test, not tuned: four microbatches, bound by launches"],
  [/^torchao-8b-8b200/, "torchao's first release on B200: bf16 is as far off"],
  [/^torchao-(8b-8h100|tutorial)/, "casts by eager operations of a tutorial, not compiled"],
  [/^torchao-8b-8mi300x/, "row-wise scales without kernels of their own on MI300X"],
  [
    /^mlperf4\.1-google-cloud-tpu-trillium/,
    "8-bit integers gain a fifth there, not the double of their peak (tpu-recipes: 17.2 s in bf16, 14.2 s in 8 bits)",
  ],
  [
    /^mlperf5\.1-.*mi35[05]x/,
    "casts and transposes that are kernels of their own; B200's rows of this benchmark are short by a tenth too",
  ],
  [
    /^dgxc-.*gpt3-175b.*--2$/,
    "its first feed-forward product is recomputed, which no policy here does alone",
  ],
  [/^sc21-t2-zero3/, "DeepSpeed of 2021 gathers parameter by parameter, and hides little of it"],
  [
    /^aa-13b-s2048-.*mbs8-every_layer-flash_attention2/,
    "this sheet's FlashAttention 2 is slower than its 1 from microbatches of 2 on",
  ],
  [
    /^aa-.*pp16.*sp0/,
    "every rank sends whole activations: over more than the one port a host that is assumed",
  ],
  [
    /^internevo-7b-tp1-z-1/,
    "optimizer states are shared out over all ranks, and weights gathered from all of them",
  ],
  [
    /^tt-202506-asynctp/,
    "500 W parts, whose clock under a batch of 12 falls below what the power model leaves",
  ],
  [/^tt-202412-8b-8gpu-cp/, "context parallelism of its first release, not hidden"],
  [/^mpt-30b-8192/, "Triton's attention of 2023 on long sequences"],
  [/^automodel-llama3-70b/, "FSDP with context parallelism whose exchange is not hidden"],
  [
    /^vocabpp-.*#peak/,
    "copies in 32 bits of what is handed out, and results that wait for the stream of the exchanges",
  ],
  [
    /^vocabpp-.*-interlaced/,
    "each synchronous exchange waits for the last rank: without them 32 GPUs are 11 % faster (appendix B.2)",
  ],
  [
    /^vocabpp-1f1b-.*-s4096-/,
    "at 4096 tokens the source's profile has layers 11 % slower than at 2048 (artifact/exp_one_host.csv), and a pipeline step's start",
  ],
  [/^vocabpp-/, "a pipeline step's start, and the wait for the last stage in every microbatch"],
  [/^zb-.*#zb-h2|^zb-.*zb-2p/, "the schedule as built has less warm-up than its theory"],
  [/^zb-.*1f1b-i/, "sends between chunks, and the optimizer, are not in the profile"],
  [
    /^mcore-moe-layer-deepseek/,
    "a layer alone runs at the full clock, its router limits a token to four ranks",
  ],
  [
    /^nccl-b200-32gpu-ar-(32|64)kib/,
    "connections set up on the clock: the same sweep's next call took half the time",
  ],
];

/** The likely cause of a row's error; empty where none is known. */
export function likelyCause(id: string): string {
  return causes.find(([pattern]) => pattern.test(id))?.[1] ?? "";
}
