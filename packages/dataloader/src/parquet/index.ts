export { type ParquetFile, type ParquetColumn, openParquet } from "./parquet-file.ts";
export { parquetDocuments } from "./parquet-documents.ts";
export { type ParquetTokens, parquetTokens } from "./parquet-tokens.ts";
export { type ParquetWriteOptions, encodeParquet } from "./encode-parquet.ts";
