import { missingPeer } from "@trireme/core";
import type * as S3 from "@aws-sdk/client-s3";

/** The AWS client, or a word on how to install it. */
export const aws: typeof S3 = await import("@aws-sdk/client-s3").catch(
  missingPeer("@trireme/runtime/s3", "@aws-sdk/client-s3", "3.1175.0"),
);
