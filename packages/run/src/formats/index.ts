export { type Imported, type Unsupported } from "./interchange.ts";
export { fromMegatron } from "./from-megatron.ts";
export { type MegatronArguments, toMegatron } from "./to-megatron.ts";
export { type DeepSpeedConfiguration, fromDeepSpeed, toDeepSpeed } from "./deepspeed.ts";
