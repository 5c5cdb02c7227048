import type { S3Client } from "@aws-sdk/client-s3";
import { type ShardedStore, writeFiles } from "@trireme/runtime";
import { type S3StoreOptions, s3Storage, s3Store } from "@trireme/runtime/s3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clientOf, contents, everyRequestFails, snapshot } from "./s3-faults.ts";
import { S3Server } from "./s3-server.ts";

let server: S3Server;
let client: S3Client;
beforeEach(async () => {
  server = await S3Server.start();
  client = clientOf(server);
});
afterEach(async () => {
  client.destroy();
  await server.stop();
});

const prefix = "runs/a";
const MiB = 2 ** 20;

function storeOf(options: Partial<S3StoreOptions> = {}): ShardedStore {
  return s3Store({ client, bucket: server.bucket, prefix, ...options });
}

describe("a store in a bucket", () => {
  it("gives back what was saved, keeps the newest, and has the marker come last", async () => {
    const store = storeOf();
    expect(await store.newest()).toBeUndefined();
    for (const step of [1, 2, 3]) await store.save(snapshot(step));
    expect(await store.steps()).toEqual([3, 2]);
    expect(contents(await store.load(3))).toEqual(contents(snapshot(3)));
    await expect(store.load(1)).rejects.toThrow(/no complete checkpoint of step 1; it has 3, 2/);
    const puts = server.log.filter((request) => request.startsWith("PUT runs/a/step-00000003"));
    expect(puts.map((request) => request.split("/").at(-1)!.split("?")[0])).toEqual([
      "a.bin",
      "b.bin",
      "COMPLETE",
    ]);
    expect(server.objects.get("runs/a/latest")!.toString()).toBe("step-00000003\n");
    await store.discardAfter(2);
    expect(await storeOf().steps()).toEqual([2]);
  });

  it("sends a file larger than a part in parts, several at a time, and reads it in part", async () => {
    const bytes = new Uint8Array(23 * MiB).map((_, i) => i % 253);
    const pieces = [bytes.subarray(0, 7 * MiB), bytes.subarray(7 * MiB)];
    const storage = s3Storage({ client, bucket: server.bucket, partBytes: 5 * MiB });
    const store = storeOf({ partBytes: 5 * MiB });
    await store.saveShards(1, [
      (into) => writeFiles(storage, into, [{ name: "large.bin", chunks: () => pieces }]),
    ]);
    expect(server.log.filter((request) => request.includes("partNumber"))).toHaveLength(5);
    expect(Buffer.compare(server.objects.get("runs/a/step-00000001/large.bin")!, bytes)).toBe(0);
    const opened = await store.open();
    await opened.verify();
    const { read, size } = opened.source("large.bin");
    expect(size).toBe(23 * MiB);
    expect(await read(6 * MiB - 3, 10)).toEqual(bytes.slice(6 * MiB - 3, 6 * MiB + 7));
    expect(Buffer.compare(await opened.read("large.bin"), bytes)).toBe(0);
  });

  it("falls back where an object is missing, short or another", async () => {
    const store = storeOf({ keep: 9 });
    for (const step of [1, 2, 3, 4]) await store.save(snapshot(step));
    server.objects.delete("runs/a/step-00000004/a.bin");
    server.objects.set("runs/a/step-00000003/a.bin", Buffer.alloc(99));
    expect(await store.newest()).toBe(2);
    server.objects.get("runs/a/step-00000002/a.bin")![5] = 255;
    await expect(store.load(2)).rejects.toMatchObject({
      code: "DAMAGED",
      message: expect.stringMatching(
        /step-00000002\/a\.bin has CRC-32 [0-9a-f]{8}; [0-9a-f]{8} was/,
      ),
    });
    expect(contents(await store.load(1))).toEqual(contents(snapshot(1)));
  });

  it("is listed in pages", async () => {
    server.pageSize = 2;
    const store = storeOf({ keep: 5 });
    for (const step of [1, 2, 3, 4, 5, 6]) await store.save(snapshot(step));
    expect(await store.steps()).toEqual([6, 5, 4, 3, 2]);
    expect([...server.objects.keys()].some((key) => key.includes("step-00000001"))).toBe(false);
  });

  it("says which request failed, and why", async () => {
    await expect(storeOf({ bucket: "other" }).save(snapshot(1))).rejects.toThrow(
      "cannot list runs/a in the bucket other: NoSuchBucket: The bucket does not exist.",
    );
    expect(() => storeOf({ prefix: "/runs/" })).toThrow('prefix "/runs/": names with "/" between');
    expect(() => storeOf({ partBytes: MiB })).toThrow(
      "partBytes 1048576: S3 takes 5242880 (5 MiB)",
    );
    expect(() => storeOf({ concurrency: 0 })).toThrow("concurrency 0");
    const storage = s3Storage({ client, bucket: server.bucket });
    await expect(storage.execute({ kind: "rename", from: "a", to: "b" })).rejects.toThrow(
      "an object store has no rename",
    );
    const late = { kind: "write", path: "a", bytes: new Uint8Array(1), offset: 5 } as const;
    await expect(storage.execute(late)).rejects.toThrow(
      "bytes from 5 on came where nothing had been written",
    );
    await expect(storage.execute({ kind: "sync", path: "a" })).rejects.toThrow(
      "nothing was written",
    );
  });
});

everyRequestFails(0, ["dies after"]);
