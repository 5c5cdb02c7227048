export { type S3StoreOptions, s3Store } from "./s3-store.ts";
export { type S3StorageOptions, s3Storage } from "./s3-storage.ts";
