export { zstdCompress, zstdDecompress, zstdPieces } from "./zstd.ts";
