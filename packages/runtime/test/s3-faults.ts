/** A store in a bucket whose every request fails in turn: for the quick tests, and for files in parts. */
import { S3Client } from "@aws-sdk/client-s3";
import { type Snapshot, writeFiles } from "@trireme/runtime";
import { s3Storage, s3Store } from "@trireme/runtime/s3";
import { expect, it } from "vitest";
import { S3Server } from "./s3-server.ts";

const MiB = 2 ** 20;
const prefix = "runs/a";

/** A client that asks once. */
export function clientOf({ endpoint }: S3Server): S3Client {
  return new S3Client({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    forcePathStyle: true,
    maxAttempts: 1,
  });
}

export function snapshot(step: number): Snapshot {
  return {
    step,
    files: [
      { name: "a.bin", bytes: Uint8Array.from({ length: 100 }, (_, i) => (i * step) % 251) },
      { name: "b.bin", bytes: new Uint8Array(0) },
    ],
  };
}

export function contents({ files }: Snapshot): Record<string, string> {
  return Object.fromEntries(files.map((f) => [f.name, Buffer.from(f.bytes).toString("hex")]));
}

/** The test, with a third file of so many bytes; above 5 MiB it goes up in parts. */
export function everyRequestFails(bytes: number, faults: readonly string[]): void {
  const large = new Uint8Array(bytes).fill(9);

  async function run(fault: string, server: S3Server, client: S3Client): Promise<void> {
    const { bucket } = server;
    const newestWhole = async (): Promise<number> => {
      const store = s3Store({ client, bucket, prefix });
      const newest = (await store.newest())!;
      const { files } = await store.load(newest);
      const third = files.find(({ name }) => name === "large.bin")!;
      expect(Buffer.compare(third.bytes, large)).toBe(0);
      const others = files.filter((file) => file !== third);
      expect(contents({ step: newest, files: others })).toEqual(contents(snapshot(newest)));
      return newest;
    };
    const save = async (step: number): Promise<void> => {
      // A store of its own for each save, as each process has.
      const storage = s3Storage({ client, bucket, partBytes: 5 * MiB, concurrency: 1 });
      const files = [...snapshot(step).files, { name: "large.bin", bytes: large }];
      const store = s3Store({ client, bucket, prefix, keep: 1 });
      await store.saveShards(step, [(into) => writeFiles(storage, into, files)]);
    };
    await save(1);
    const before = server.log.length;
    await save(2);
    const requests = server.log.length - before;
    expect(requests).toBeGreaterThan(10);
    let [kept, replaced] = [0, 0];
    for (let at = 0; at < requests; at++) {
      server.objects.clear();
      server.uploads.clear();
      await save(1);
      const first = server.log.length;
      server.fault = (request) => {
        const number = request - first;
        // The dead send nothing more; what they sent last may have arrived.
        if (number > at && fault.startsWith("dies")) return "before";
        if (number !== at) return undefined;
        return fault.endsWith("before") ? "before" : "after";
      };
      await expect(save(2), `request ${at}`).rejects.toThrow(/the test says so/);
      server.fault = () => undefined;
      const newest = await newestWhole();
      if (newest === 1) kept++;
      else replaced++;
      expect([1, 2]).toContain(newest);
      await save(3);
      expect(await newestWhole()).toBe(3);
      const left = new Set([...server.objects.keys()].map((key) => key.split("/")[2]));
      expect(left).toEqual(new Set(["latest", "step-00000003"]));
      expect(server.uploads.size).toBe(0);
    }
    expect(kept).toBeGreaterThan(4);
    expect(replaced).toBeGreaterThan(3);
  }

  it.each(faults)(
    "a store that %s any one request leaves the newest complete checkpoint, whole",
    async (fault) => {
      const server = await S3Server.start();
      const client = clientOf(server);
      try {
        await expect(run(fault, server, client)).resolves.toBeUndefined();
      } finally {
        client.destroy();
        await server.stop();
      }
    },
  );
}
