export { type Document, type SplitOptions, splitDocuments } from "./document.ts";
export { keyedPermutation } from "./keyed-permutation.ts";
export {
  type CanonicalPartition,
  type CanonicalPartitionOptions,
  canonicalPartition,
} from "./canonical/partition.ts";
export { type ShardShuffle, type ShardShuffleOptions, shuffleShards } from "./canonical/shuffle.ts";
export { type Tokenizer, type Tokens, restoreTokenizer } from "./tokenizer.ts";
export { byteTokenizer } from "./byte-tokenizer.ts";
export { characterTokenizer } from "./character-tokenizer.ts";
export { type TokenDataset, tokenDataset, tokenize } from "./token-dataset.ts";
export { type LoadPlan, type Placement, firstRow, placementOf, samplesOf } from "./load-plan.ts";
export { type LoaderIdentity, type LoaderState } from "./loader-state.ts";
export { FormatError } from "./format-error.ts";
export { type ByteReader, memoryReader, readAhead } from "./byte-reader.ts";
export { type TokenType, tokenTypeFor, tokenWidth } from "./token-type.ts";
export {
  type TokenSource,
  concatenateSources,
  datasetSource,
  megatronSource,
} from "./token-source.ts";
export { type MegatronIndex, decodeMegatronIndex, encodeMegatronIndex } from "./megatron-index.ts";
export { type LlmcModel, encodeLlmcShard, llmcSource } from "./llmc-shard.ts";
export { type MdsArray, type MdsElement, type MdsElements } from "./mds-array.ts";
export { type MdsValue } from "./mds-encoding.ts";
export {
  type MdsColumns,
  type MdsSample,
  type MdsShard,
  type MdsShardOptions,
  decodeMdsShard,
  encodeMdsSample,
  encodeMdsShard,
  mdsColumns,
} from "./mds-shard.ts";
export { type MdsFile, type MdsShardInfo, decodeMdsIndex, encodeMdsIndex } from "./mds-index.ts";
export { type TarEntry, readTar, tarContent } from "./tar.ts";
export { encodeTar } from "./tar-writer.ts";
export {
  type WebSample,
  type WebSampleData,
  encodeWebDataset,
  readWebDataset,
} from "./webdataset.ts";
export { type JsonLine, encodeJsonLines, readJsonLines, textField } from "./json-lines.ts";
export { type JsonValue } from "./python-json.ts";
export { type Blend, type BlendOptions, type Exhausted, blend, exhaustiveBlend } from "./blend.ts";
export { type MixturePoint, temperedWeights, weightsAt } from "./mixture.ts";
export {
  type SampleIndex,
  type SampleIndexOptions,
  epochsFor,
  sampleIndex,
} from "./sample-index.ts";
export { shuffleDocuments } from "./shuffled-documents.ts";
export {
  type LongDocuments,
  type Packing,
  type PackingMethod,
  type PackingOptions,
  pack,
  packedRows,
  packingFill,
} from "./packing.ts";
export { type PackedRow, type ReadDocument, packedRow } from "./packed-row.ts";
export {
  type Balance,
  type BalanceOptions,
  type SequenceCost,
  balanceGreedy,
  balanceKarmarkarKarp,
  sequenceCost,
} from "./balance.ts";
export { type Chunk, causalPairs, requiredMultiple, zigzagChunks } from "./context-parallel.ts";
export { type Batch, type Loader, type LoaderOptions, createLoader } from "./loader.ts";
export { firstInvalidUtf8 } from "./utf8.ts";
export { type BatchStreamOptions, type BatchWorker, streamBatches } from "./batch-stream.ts";
export {
  type DataSharing,
  type Place,
  type PlaceAxis,
  type PlaceMesh,
  type PlaceTree,
  placeTree,
  receiversOf,
} from "./place-tree.ts";
export {
  type BalanceMethod,
  type Distribution,
  type DistributionOptions,
  distribute,
} from "./distribution.ts";
export {
  type Scaling,
  type ScalingOptions,
  type SourceProfile,
  scaleSources,
  smoothWeights,
} from "./source-scaling.ts";
export {
  type StagingOptions,
  type StagingPlan,
  type WorkerMeasurement,
  nextWorkers,
  stagingPlan,
} from "./staging.ts";
export {
  type EncoderShapes,
  type Part,
  type PartTokens,
  type SampleWork,
  partTokens,
  sampleWork,
} from "./modality.ts";
export {
  type MixDraw,
  type MixOptions,
  type MixState,
  drawMix,
  startMix,
} from "./planning/mixer.ts";
export {
  type DataGraph,
  type DataState,
  ancestorsOf,
  dataGraph,
  descendantsOf,
  extendGraph,
} from "./planning/data-graph.ts";
export {
  type EncoderModality,
  type SampleCosts,
  type SampleMetadata,
  metadataOf,
  multimodalCosts,
  textCosts,
} from "./planning/sample-costs.ts";
export {
  type Delivery,
  type EncoderDeal,
  type LoadingPlan,
  membersOf,
} from "./planning/loading-plan.ts";
export { type BalanceLevel, type LoadProgramSpec } from "./planning/load-program-spec.ts";
export { type LoadProgram, loadProgram } from "./planning/load-program.ts";
export { type Planner, type PlannerDraw, type PlannerState } from "./planning/planner.ts";
export {
  type MultiSourceIdentity,
  type MultiSourceState,
  restoreMultiSource,
} from "./planning/planner-checkpoint.ts";
export { type LongShort, type LongShortOptions, longShort } from "./planning/long-short.ts";
export {
  type HybridPacking,
  type HybridPackingOptions,
  packHybrid,
} from "./planning/hybrid-packing.ts";
export {
  type ConstructOptions,
  type Microbatch,
  type ReadSample,
  type ShareBatch,
  constructShare,
  sliceMicrobatch,
} from "./construct/microbatch.ts";
export { decodeFrame, encodeFrame, frameBound, frameWords } from "./construct/batch-frame.ts";
export {
  type SampleSource,
  type SourceSnapshot,
  documentSamples,
  sourceSeed,
} from "./sources/sample-source.ts";
export {
  type SampleStream,
  type StreamedSample,
  sequentialSamples,
} from "./sources/sequential-samples.ts";
export {
  type AutoScalerOptions,
  type AutoScalerState,
  type ScalingChange,
  autoScale,
  startScaler,
} from "./scaling/auto-scaler.ts";
export {
  type PartitionOptions,
  type SourcePartition,
  partitionSources,
} from "./scaling/source-partition.ts";
export { type ShadowPlan, type StandbyCandidate, planShadows } from "./scaling/shadow-loaders.ts";
export {
  type ReshardMove,
  type ReshardOptions,
  type Resharding,
  reshard,
} from "./scaling/resharding.ts";
