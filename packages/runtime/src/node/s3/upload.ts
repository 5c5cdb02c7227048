/**
 * One object being written: parts go up as they fill, several at a time, and the object appears whole when
 * it is completed. What fits in one part is put in one request.
 */
import type { S3Client } from "@aws-sdk/client-s3";
import type { Bytes } from "@trireme/core";
import { aws } from "./client.ts";

/** Where an object goes, and in what pieces. */
export interface UploadTarget {
  readonly client: S3Client;
  readonly bucket: string;
  readonly key: string;
  /** Bytes of the first thousand parts; S3 asks for 5 MiB or more of all but the last. */
  readonly partBytes: Bytes;
  /** Parts on their way at a time. */
  readonly concurrency: number;
}

export class Upload {
  readonly #target: UploadTarget;
  /** Bytes taken that are in no part yet. */
  #chunks: Uint8Array[] = [];
  #pending = 0;
  #size = 0;
  #id: string | undefined;
  readonly #parts: Promise<{ readonly ETag: string; readonly PartNumber: number }>[] = [];
  readonly #flying = new Set<Promise<unknown>>();

  constructor(target: UploadTarget) {
    this.#target = target;
  }

  /** Bytes taken so far. */
  get size(): Bytes {
    return this.#size;
  }

  /** Takes bytes, of which nothing is kept that the caller may change afterwards. */
  async write(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (this.#pending + rest.byteLength >= this.#partBytes()) {
      const cut = this.#partBytes() - this.#pending;
      this.#add(rest.subarray(0, cut));
      rest = rest.subarray(cut);
      await this.#send();
    }
    this.#add(rest);
  }

  /** The object appears. */
  async complete(): Promise<void> {
    const { client, bucket: Bucket, key: Key } = this.#target;
    if (this.#id === undefined) {
      await client.send(new aws.PutObjectCommand({ Bucket, Key, Body: this.#take() }));
      return;
    }
    if (this.#pending > 0) await this.#send();
    const Parts = await Promise.all(this.#parts);
    const MultipartUpload = { Parts };
    const UploadId = this.#id;
    await client.send(
      new aws.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }),
    );
  }

  /** Takes back what is up. */
  async abort(): Promise<void> {
    await Promise.allSettled(this.#parts);
    if (this.#id === undefined) return;
    const { client, bucket: Bucket, key: Key } = this.#target;
    await client.send(new aws.AbortMultipartUploadCommand({ Bucket, Key, UploadId: this.#id }));
  }

  /**
   * At most 10,000 parts make an object: parts double in size every thousand, so that 5 TiB, the most
   * that S3 takes, fit whatever the first size.
   */
  #partBytes(): Bytes {
    return this.#target.partBytes * 2 ** Math.floor(this.#parts.length / 1000);
  }

  #add(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#chunks.push(bytes.slice());
    this.#pending += bytes.byteLength;
    this.#size += bytes.byteLength;
  }

  #take(): Uint8Array {
    const all = new Uint8Array(this.#pending);
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.byteLength;
    }
    this.#chunks = [];
    this.#pending = 0;
    return all;
  }

  async #send(): Promise<void> {
    const { client, bucket: Bucket, key: Key, concurrency } = this.#target;
    this.#id ??= await this.#begin();
    while (this.#flying.size >= concurrency) await Promise.race(this.#flying);
    const PartNumber = this.#parts.length + 1;
    const body = { Bucket, Key, UploadId: this.#id, PartNumber, Body: this.#take() };
    const part = client
      .send(new aws.UploadPartCommand(body))
      .then(({ ETag = "" }) => ({ ETag, PartNumber }));
    this.#parts.push(part);
    this.#flying.add(part);
    // A failure is thrown by whoever waits next; here it only must not count as unhandled.
    part
      .catch(() => undefined)
      .finally(() => this.#flying.delete(part))
      .catch(() => undefined);
  }

  async #begin(): Promise<string> {
    const { client, bucket: Bucket, key: Key } = this.#target;
    const begun = await client.send(new aws.CreateMultipartUploadCommand({ Bucket, Key }));
    if (begun.UploadId === undefined) throw new Error("the store gave no upload id");
    return begun.UploadId;
  }
}
