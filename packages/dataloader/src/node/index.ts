export { readTextDocuments } from "./text-documents.ts";
export { type FileReader, openFileReader } from "./file-reader.ts";
export { type MegatronFiles, openMegatronFiles, writeMegatronFiles } from "./megatron-files.ts";
export {
  type MdsDirectory,
  type MdsWriteOptions,
  openMdsDirectory,
  writeMdsDirectory,
} from "./mds-directory.ts";
export { readJsonLinesDocuments } from "./json-lines-file.ts";
export {
  type PrepareOptions,
  type PrepareProgress,
  type PrepareReport,
  prepareTokens,
} from "./prepare.ts";
export { type LoaderThread, type LoaderThreadOptions, startLoaderThread } from "./loader-thread.ts";
export { type RemoteFile, type RemoteFileOptions, fetchFile } from "./remote-file.ts";
