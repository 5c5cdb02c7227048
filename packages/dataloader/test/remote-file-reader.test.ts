import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encodeMegatronIndex } from "@trireme/dataloader";
import {
  httpObject,
  openRemoteFileReader,
  openRemoteMegatronFiles,
} from "@trireme/dataloader/node";

/** A server on a thread of its own, as reading blocks this one. Every third request is broken off. */
const server = `
  const { createServer } = require("node:http");
  const { parentPort, workerData } = require("node:worker_threads");
  const tokens = new Uint16Array(3_000_000).map((_, i) => (i * 7) % 65_521);
  const files = { "/x.bin": Buffer.from(tokens.buffer), "/x.idx": Buffer.from(workerData) };
  let requests = 0;
  const server = createServer((request, response) => {
    if (request.url === "/none") return response.writeHead(404).end();
    const bytes = files[request.url];
    const [, from, to] = /^bytes=(\\d+)-(\\d+)$/.exec(request.headers.range);
    const part = bytes.subarray(Number(from), Number(to) + 1);
    response.writeHead(206, {
      etag: '"x"',
      "content-length": part.length,
      "content-range": "bytes " + from + "-" + (Number(from) + part.length - 1) + "/" + bytes.length,
    });
    if (++requests % 3 === 0) response.write(part.subarray(0, 1000), () => response.destroy());
    else response.end(part);
  }).listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;
let worker: Worker;
let base = "";
beforeAll(async () => {
  const lengths = Int32Array.of(3_000_000);
  const workerData = encodeMegatronIndex({
    type: "u16",
    lengths,
    documents: Float64Array.of(0, 1),
  });
  worker = new Worker(server, { eval: true, workerData });
  base = await new Promise<string>((done, failed) => {
    worker.once("message", (port: number) => done(`http://127.0.0.1:${port}`));
    worker.once("error", failed);
  });
}, 60_000);
afterAll(() => worker.terminate());

test("a token file on a server is a source as one on the disk is", async () => {
  const options = { blockBytes: 500_000, pause: 0.001 };
  const [bin, idx] = ["bin", "idx"].map((end) => httpObject({ url: `${base}/x.${end}` }));
  const files = await openRemoteMegatronFiles(bin!, idx!, options);
  const { source } = files;
  expect(source.length).toBe(3_000_000);
  for (const [start, length] of [
    [0, 10],
    [2_999_990, 10],
    [1_249_990, 30],
    // Longer than what crosses between the threads at once.
    [100_000, 1_500_000],
  ] as const) {
    const into = new Int32Array(length);
    source.read(start, into);
    expect([start, into.every((token, i) => token === ((start + i) * 7) % 65_521)]).toEqual([
      start,
      true,
    ]);
  }
  files.close();
  expect(() => source.read(0, new Int32Array(100))).toThrow("closed");
  const data = await openRemoteFileReader(bin!, options);
  expect(() => data.read(data.size, new Uint8Array(1))).toThrow("are outside 0 to 6000000");
  data.close();
});

test("what cannot be opened is told, and so is what cannot cross to the thread", async () => {
  await expect(openRemoteFileReader(httpObject({ url: `${base}/none` }))).rejects.toThrow(
    `${base}/none: 404 Not Found`,
  );
  const own = httpObject({ url: base, fetch: (to, init) => fetch(to, init) });
  await expect(openRemoteFileReader(own)).rejects.toThrow("cannot be handed to the reading thread");
});
