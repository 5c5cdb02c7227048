export { readTextDocuments } from "./text-documents.ts";
export { type FileReader, openFileReader } from "./file-reader.ts";
export {
  type MegatronFiles,
  openMegatronFiles,
  openRemoteMegatronFiles,
  writeMegatronFiles,
} from "./megatron-files.ts";
export {
  type MdsDirectory,
  type MdsWriteOptions,
  openMdsDirectory,
  writeMdsDirectory,
} from "./mds-directory.ts";
export { type Corpus, type CorpusOptions, readCorpus } from "./corpus.ts";
export { readJsonLinesDocuments } from "./json-lines-file.ts";
export {
  type PrepareOptions,
  type PrepareProgress,
  type PrepareReport,
  prepareTokens,
} from "./prepare.ts";
export { type LoaderThread, type LoaderThreadOptions, startLoaderThread } from "./loader-thread.ts";
export { type RemoteFile, type RemoteFileOptions, fetchFile } from "./remote/fetch-file.ts";
export {
  type HostLoader,
  type RunningActor,
  type World,
  startHostLoader,
} from "./actors/host-loader.ts";
export { type HostLoaderOptions } from "./actors/host-loader-options.ts";
export { type ActorKind } from "./actors/actor.ts";
export { type OpenSource, type OpenSourceResult, type SourceSpec } from "./actors/open-source.ts";
export { type RankBatchOptions, type RankFeed, rankBatches } from "./actors/rank-batches.ts";
export { type Ring, type RingRef, type RingShape, type RingStatus } from "./actors/ring.ts";
export { createSharedRing } from "./actors/shared-ring.ts";
export { createFileRing } from "./actors/file-ring.ts";
export { nextFrame, openRing, roomFor } from "./actors/ring-waits.ts";
export { createRunDirectory, removeRunDirectory } from "./actors/run-directory.ts";
export {
  type RemoteObject,
  type RemoteRecipe,
  type RemoteStat,
  RemoteFailure,
} from "./remote/remote-object.ts";
export { type HttpObjectOptions, httpObject } from "./remote/http-object.ts";
export { type BlockCacheOptions } from "./remote/block-cache.ts";
export { type RetryOptions } from "./remote/retry.ts";
export { type RemoteReader, type RemoteReaderOptions, openRemote } from "./remote/remote-reader.ts";
export { openRemoteFileReader } from "./remote/blocking-reader.ts";
export { type TokenRowsReport, writeTokenRows } from "./token-rows.ts";
