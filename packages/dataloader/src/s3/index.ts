export { type S3ObjectOptions, s3Object } from "./s3-object.ts";
