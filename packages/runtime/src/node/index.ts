export { type FileStoreOptions, fileStore } from "./file-store.ts";
export { executeFileOperations } from "./file-operations.ts";
export { type RunFolder, runFolder } from "./run-folder.ts";
