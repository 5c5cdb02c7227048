/** Objects of S3 and of stores that speak its protocol, by the AWS SDK. */
import type { S3ClientConfig } from "@aws-sdk/client-s3";
import { TriremeError, missingPeer } from "@trireme/core";
import {
  RemoteFailure,
  type RemoteObject,
  type RemoteStat,
  changed,
  passing,
} from "../node/remote/remote-object.ts";

const { GetObjectCommand, HeadObjectCommand, S3Client } = await import("@aws-sdk/client-s3").catch(
  missingPeer("@trireme/dataloader/s3", "@aws-sdk/client-s3", "3.1175.0"),
);

/** Which object, and of which store. */
export interface S3ObjectOptions {
  /** `s3://bucket/key`. */
  readonly url: string;
  /** Default: what the SDK finds (AWS_REGION, the shared configuration file). */
  readonly region?: string;
  /** Address of a store other than AWS's; the bucket is then a part of the path. */
  readonly endpoint?: string;
  /** Default: what the SDK finds (environment, files, the machine's or the pod's role). */
  readonly credentials?: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
}

/** An object of a store. Requests are signed by the SDK; trying again is left to who reads. */
export function s3Object(options: S3ObjectOptions): RemoteObject {
  const { url, region, endpoint, credentials } = options;
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/s.exec(url) ?? [];
  if (bucket === undefined || key === undefined) {
    throw new TriremeError("REMOTE", `${JSON.stringify(url)} is no s3://bucket/key`);
  }
  const config: S3ClientConfig = {
    maxAttempts: 1,
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials === undefined ? {} : { credentials: { ...credentials } }),
  };
  const client = new S3Client(config);
  const at = { Bucket: bucket, Key: key };
  return {
    name: url,
    async stat(signal) {
      const head = await client
        .send(new HeadObjectCommand(at), { abortSignal: signal })
        .catch((cause: unknown) => {
          throw failureOf(url, cause);
        });
      if (head.ContentLength === undefined)
        throw new RemoteFailure(`${url}: the store tells no size`, false);
      return { size: head.ContentLength, version: head.ETag };
    },
    async *range(start, end, of, signal) {
      const same = of.version === undefined ? {} : { IfMatch: of.version };
      const answer = await client
        .send(new GetObjectCommand({ ...at, ...same, Range: `bytes=${start}-${end - 1}` }), {
          abortSignal: signal,
        })
        .catch((cause: unknown) => {
          throw failureOf(url, cause, of);
        });
      const body: unknown = answer.Body;
      const [, from, size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.ContentRange ?? "") ?? [];
      if (Number(size) !== of.size || (of.version ?? answer.ETag) !== answer.ETag) {
        drop(body);
        throw changed(url, of, { size: Number(size), version: answer.ETag });
      }
      if (Number(from) !== start) {
        drop(body);
        throw new RemoteFailure(`${url}: asked for bytes from ${start} on, got others`, true);
      }
      if (isBody(body)) yield* body;
    },
    recipe: { module: import.meta.url, function: "s3Object", options },
  };
}

/** What the SDK threw, in the terms of who tries again: a status that passes, or no answer at all. */
function failureOf(url: string, cause: unknown, of?: RemoteStat): RemoteFailure {
  const { name, message } = cause instanceof Error ? cause : { name: "", message: String(cause) };
  const status = Number(field(field(cause, "$metadata"), "httpStatusCode") ?? 0);
  if (of !== undefined && (status === 412 || status === 416)) return changed(url, of, {});
  const again = status === 0 ? name !== "CredentialsProviderError" : passing(status);
  const asked = Number(field(field(field(cause, "$response"), "headers"), "retry-after"));
  const what = [status === 0 ? [] : [status], name, message === name ? [] : [message]].flat();
  return new RemoteFailure(`${url}: ${what.join(" ")}`.trimEnd(), again, asked > 0 ? asked : 0, {
    cause,
  });
}

function field(value: unknown, key: string): unknown {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return entries.find(([name]) => name === key)?.[1];
}

/** Under Node a body is a stream; what has no iterator is none that can be read here. */
function isBody(value: unknown): value is AsyncIterable<Uint8Array> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** Frees the connection of an answer that is not wanted. */
function drop(body: unknown): void {
  if (typeof body !== "object" || body === null || !("destroy" in body)) return;
  if (typeof body.destroy === "function") body.destroy();
}
