export { type FileStoreOptions, fileStore } from "./file-store.ts";
export { executeFileOperations, fileStorage } from "./file-storage.ts";
export { type MemoryCopy, SnapshotCopier } from "./snapshot-copier.ts";
export { GenerationLoader, type LoaderFailure } from "./generation-loader.ts";
export { decodeFeed, encodeFeed } from "./feed-text.ts";
export { type MetricSink, jsonLinesFile } from "./json-lines.ts";
export { makeDirectorySync } from "./make-directory.ts";
export { type RunFolder, runFolder } from "./run-folder.ts";
export {
  type Agent,
  type AgentEvent,
  type AgentOptions,
  type GenerationStart,
  startAgent,
} from "./driver/agent.ts";
export { type Clock, monotonicClock } from "./driver/clock.ts";
export { type Connection, type ConnectionOptions, openConnection } from "./driver/connection.ts";
export {
  type Driver,
  type DriverOptions,
  type DriverResult,
  startDriver,
} from "./driver/driver.ts";
export { type DriverChange, type DriverEvent } from "./driver/driver-event.ts";
export { fileJournal } from "./driver/file-journal.ts";
export { lockDirectory } from "./driver/journal-lock.ts";
export { type ListenOptions, dial, listen } from "./driver/listen.ts";
export { type WorkerCommand } from "./driver/running-worker.ts";
export { type Role, type Security, type TlsIdentity } from "./driver/security.ts";
