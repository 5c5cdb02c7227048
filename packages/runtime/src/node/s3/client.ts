import type * as S3 from "@aws-sdk/client-s3";
import { missingPeer } from "../missing-peer.ts";

/** The AWS client, or a word on how to install it. */
export const aws: typeof S3 = await import("@aws-sdk/client-s3").catch(
  missingPeer("s3", "@aws-sdk/client-s3", "3.1175.0"),
);
