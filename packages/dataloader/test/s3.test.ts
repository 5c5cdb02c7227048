import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRemote } from "@trireme/dataloader/node";
import { s3Object } from "@trireme/dataloader/s3";
import { type S3Server, credentials, region, startS3Server, xmlError } from "./s3-server.ts";

const content = Buffer.from(Array.from({ length: 10_000 }, (_, i) => (i * 31) % 251));
const url = "s3://corpus/shards/a b+c=1 ü.bin";
let store: S3Server;
beforeAll(async () => {
  store = await startS3Server();
});
afterAll(() => store.close());
beforeEach(() => {
  store.objects.set("corpus/shards/a b+c=1 ü.bin", content);
  store.requests.length = 0;
  store.script = [];
});

const object = (change = {}) =>
  s3Object({ url, region, endpoint: store.endpoint, credentials, ...change });
const quick = { pause: 0.001, blockBytes: 1000 };

test("ranges of an object are read with requests that the store accepts as signed", async () => {
  const reader = await openRemote(object(), quick);
  expect([reader.name, reader.size]).toEqual([url, 10_000]);
  const into = Buffer.alloc(1500);
  await reader.read(900, into);
  expect(into.equals(content.subarray(900, 2400))).toBe(true);
  const path = "/corpus/shards/a%20b%2Bc%3D1%20%C3%BC.bin";
  expect(store.requests.map((line) => line.replace(/\?x-id=\w+/, ""))).toEqual([
    `HEAD ${path}`,
    `GET ${path} bytes=0-999`,
    `GET ${path} bytes=1000-1999`,
    `GET ${path} bytes=2000-2999`,
  ]);
  reader.close();
});

test("a wrong secret, a missing object and a wrong address are told at once", async () => {
  const wrong = object({ credentials: { ...credentials, secretAccessKey: "other" } });
  await expect(openRemote(wrong, quick)).rejects.toThrow(`${url}: 403`);
  await expect(openRemote(object({ url: "s3://corpus/none" }), quick)).rejects.toThrow(
    "s3://corpus/none: 404 NotFound",
  );
  expect(store.requests.length).toBe(2);
  expect(() => object({ url: "s3://corpus" })).toThrow('"s3://corpus" is no s3://bucket/key');
});

test("a store that is busy or breaks off is asked again", async () => {
  const reader = await openRemote(object(), quick);
  store.script = [
    xmlError(503, "SlowDown"),
    (response) => response.destroy(),
    xmlError(500, "InternalError"),
  ];
  const into = Buffer.alloc(10);
  await reader.read(0, into);
  expect(into.equals(content.subarray(0, 10))).toBe(true);
  expect(store.requests.length).toBe(5);
  store.script = Array.from({ length: 9 }, () => xmlError(503, "SlowDown"));
  await expect(reader.read(5000, into)).rejects.toThrow("failed 5 times in a row");
});

test("an object that changes is refused", async () => {
  const reader = await openRemote(object(), quick);
  store.objects.set("corpus/shards/a b+c=1 ü.bin", Buffer.from(content.toReversed()));
  await expect(reader.read(0, new Uint8Array(1))).rejects.toThrow("changed since it was opened");
});

test("a signal and a deadline end what the store never answers", async () => {
  store.script = [() => undefined, () => undefined];
  await expect(openRemote(object(), { ...quick, deadline: 0.1 })).rejects.toThrow(
    "not done within",
  );
  await expect(openRemote(object(), quick, AbortSignal.timeout(50))).rejects.toThrow(/timeout/i);
});
