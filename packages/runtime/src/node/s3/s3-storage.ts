/**
 * A bucket as a storage of checkpoints. An object appears whole or not at all, so there is nothing to
 * rename: `write` sends parts, `sync` makes the object appear, and the marker, written last, commits.
 */
import type { ListMultipartUploadsCommandOutput, S3Client } from "@aws-sdk/client-s3";
import { type FileOperation, markerName } from "@trireme/checkpoint";
import { type Bytes, MiB, TriremeError } from "@trireme/core";
import { type CheckpointStorage, damaged } from "../../store/storage.ts";
import { aws } from "./client.ts";
import { Upload } from "./upload.ts";

/** Which bucket, and how it is written to. */
export interface S3StorageOptions {
  /** Has the endpoint, the region and the credentials. */
  readonly client: S3Client;
  readonly bucket: string;
  /** Default 16 MiB; S3 takes no less than 5 MiB. */
  readonly partBytes?: Bytes;
  /** Parts of one file on their way at a time; default 4. */
  readonly concurrency?: number;
}

/** A storage in a bucket. What the store refuses is a TriremeError "FILE" with the request and the reason. */
export function s3Storage(options: S3StorageOptions): CheckpointStorage {
  const { client, bucket, partBytes = MiB(16), concurrency = 4 } = options;
  if (!Number.isSafeInteger(partBytes) || partBytes < MiB(5)) {
    throw new TriremeError("RANGE", `partBytes ${partBytes}: S3 takes ${MiB(5)} (5 MiB) or more`);
  }
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new TriremeError("RANGE", `concurrency ${concurrency}: it is an integer of at least 1`);
  }
  return new BucketStorage({ client, bucket, partBytes, concurrency });
}

/** Part of a listing; `directories` end in "/". */
interface Page {
  readonly keys: readonly { readonly key: string; readonly size: Bytes }[];
  readonly directories: readonly string[];
}

// Not named Bucket: the compiler would take the key `Bucket` of a request for the class and rename it.
class BucketStorage implements CheckpointStorage {
  readonly renames = false;
  readonly #options: Required<S3StorageOptions>;
  readonly #uploads = new Map<string, Upload>();

  constructor(options: Required<S3StorageOptions>) {
    this.#options = options;
  }

  execute(operation: FileOperation): Promise<void> {
    switch (operation.kind) {
      case "write":
        return this.#attempt(`write ${operation.path}`, () => this.#write(operation));
      case "sync":
        return this.#attempt(`write ${operation.path}`, () => this.#complete(operation.path));
      case "remove":
        return this.#attempt(`remove ${operation.path}`, () => this.#remove(operation.path));
      case "make-directory":
      case "sync-directory":
        // There are no directories, only names with "/" in them.
        return Promise.resolve();
      case "rename":
        return Promise.reject(
          new TriremeError(
            "FILE",
            `cannot rename ${operation.from}: an object store has no rename`,
          ),
        );
    }
  }

  list(path: string): Promise<readonly string[]> {
    return this.#attempt(`list ${path}`, async () => {
      const prefix = `${path}/`;
      const names = new Set<string>();
      for await (const { keys, directories } of this.#pages(prefix)) {
        for (const { key } of keys) names.add(key.slice(prefix.length));
        for (const directory of directories) names.add(directory.slice(prefix.length, -1));
      }
      // What a crash left half up is there too, and is paid for: it shows, so that it is cleared away.
      for (const { key } of await this.#unfinished(prefix)) {
        const [name, rest] = key.slice(prefix.length).split("/", 2);
        if (name !== undefined && rest !== undefined) names.add(name);
      }
      return [...names].sort();
    });
  }

  files(path: string): Promise<readonly { readonly name: string; readonly size: number }[]> {
    return this.#attempt(`list ${path}`, async () => {
      const found: { name: string; size: number }[] = [];
      for await (const { keys } of this.#pages(`${path}/`)) {
        for (const { key, size } of keys) found.push({ name: key.slice(path.length + 1), size });
      }
      return found;
    });
  }

  async read(path: string, offset: number, target: Uint8Array): Promise<void> {
    if (target.byteLength === 0) return;
    const last = offset + target.byteLength - 1;
    const got = await this.#attempt(`read ${path}`, async () => {
      try {
        return await this.#fetch(path, `bytes=${offset}-${last}`, target);
      } catch (error) {
        // The object is gone, or ends before the range begins.
        if (["NoSuchKey", "InvalidRange", "NotFound"].includes(nameOf(error))) return 0;
        throw error;
      }
    });
    if (got === target.byteLength) return;
    throw damaged(`${path} has no bytes from ${offset + got} on; ${last + 1} were written`);
  }

  async #fetch(Key: string, Range: string, target: Uint8Array): Promise<number> {
    const { client, bucket } = this.#options;
    const { Body } = await client.send(new aws.GetObjectCommand({ Bucket: bucket, Key, Range }));
    const bytes = await Body?.transformToByteArray();
    if (bytes === undefined) return 0;
    // A store that ignores ranges would otherwise be believed.
    if (bytes.byteLength > target.byteLength)
      throw new Error(`${bytes.byteLength} bytes came where ${target.byteLength} were asked for`);
    target.set(bytes);
    return bytes.byteLength;
  }

  async #write({ path, bytes, offset = 0 }: FileOperation & { kind: "write" }): Promise<void> {
    const { client, bucket, partBytes, concurrency } = this.#options;
    if (offset === 0) await this.#uploads.get(path)?.abort();
    const upload =
      offset === 0
        ? new Upload({ client, bucket, key: path, partBytes, concurrency })
        : this.#uploads.get(path);
    if (upload === undefined || upload.size !== offset) {
      const has = upload === undefined ? "nothing" : `${upload.size} bytes`;
      throw new Error(`bytes from ${offset} on came where ${has} had been written`);
    }
    this.#uploads.set(path, upload);
    await upload.write(bytes);
  }

  async #complete(path: string): Promise<void> {
    const upload = this.#uploads.get(path);
    if (upload === undefined) throw new Error("nothing was written");
    await upload.complete();
    this.#uploads.delete(path);
  }

  async #remove(path: string): Promise<void> {
    for (const [key, upload] of this.#uploads) {
      if (key !== path && !key.startsWith(`${path}/`)) continue;
      await upload.abort();
      this.#uploads.delete(key);
    }
    const { client, bucket } = this.#options;
    for (const { key, id } of await this.#unfinished(`${path}/`)) {
      const upload = { Bucket: bucket, Key: key, UploadId: id };
      await client.send(new aws.AbortMultipartUploadCommand(upload));
    }
    // The marker goes first: what is left of a checkpoint must not look whole.
    const marker = `${path}/${markerName}`;
    await this.#delete([marker]);
    for await (const { keys } of this.#pages(`${path}/`)) {
      await this.#delete(keys.map(({ key }) => key));
    }
    await this.#delete([path]);
  }

  async #delete(keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return;
    const { client, bucket } = this.#options;
    const Objects = keys.map((Key) => ({ Key }));
    const { Errors = [] } = await client.send(
      new aws.DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } }),
    );
    const [first] = Errors;
    if (first !== undefined) throw new Error(`${first.Key}: ${first.Code} ${first.Message ?? ""}`);
  }

  /** What is directly under a prefix that ends in "/", up to a thousand entries at a time. */
  async *#pages(prefix: string): AsyncGenerator<Page> {
    const { client, bucket } = this.#options;
    let token: string | undefined;
    do {
      const page = await client.send(
        new aws.ListObjectsV2Command({
          Bucket: bucket,
          Prefix: prefix,
          Delimiter: "/",
          ContinuationToken: token,
        }),
      );
      const keys = (page.Contents ?? []).flatMap(({ Key, Size = 0 }) =>
        Key === undefined ? [] : [{ key: Key, size: Size }],
      );
      const directories = (page.CommonPrefixes ?? []).flatMap(({ Prefix }) => Prefix ?? []);
      yield { keys, directories };
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  async #unfinished(
    prefix: string,
  ): Promise<readonly { readonly key: string; readonly id: string }[]> {
    const { client, bucket } = this.#options;
    const found: { key: string; id: string }[] = [];
    let [key, id]: [string | undefined, string | undefined] = [undefined, undefined];
    for (;;) {
      const page: ListMultipartUploadsCommandOutput = await client.send(
        new aws.ListMultipartUploadsCommand({
          Bucket: bucket,
          Prefix: prefix,
          KeyMarker: key,
          UploadIdMarker: id,
        }),
      );
      for (const { Key, UploadId } of page.Uploads ?? []) {
        if (Key !== undefined && UploadId !== undefined) found.push({ key: Key, id: UploadId });
      }
      if (page.IsTruncated !== true) return found;
      [key, id] = [page.NextKeyMarker, page.NextUploadIdMarker];
    }
  }

  async #attempt<T>(what: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof TriremeError) throw error;
      const name = nameOf(error);
      const text = error instanceof Error ? error.message : String(error);
      const why = text.startsWith(name) ? text : `${name}: ${text}`;
      const message = `cannot ${what} in the bucket ${this.#options.bucket}: ${why}`;
      throw new TriremeError("FILE", message, { cause: error });
    }
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "Error";
}
