import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { fetchFile } from "@trireme/dataloader/node";

const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 97) % 256));
const sha256 = createHash("sha256").update(content).digest("hex");

let server: Server;
let url = "";
let directory = "";
let requests: (string | undefined)[] = [];
/** What the server does with the next requests; after them it answers as it should. */
let script: ((request: IncomingMessage, response: ServerResponse) => void)[] = [];
let version = '"one"';

function answer(request: IncomingMessage, response: ServerResponse, most = Infinity): void {
  const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
  const same = request.headers["if-range"] === version;
  const start = range !== null && same ? Number(range[1]) : 0;
  response.setHeader("etag", version);
  response.setHeader("content-length", content.length - start);
  if (start > 0) {
    response.statusCode = 206;
    response.setHeader("content-range", `bytes ${start}-${content.length - 1}/${content.length}`);
  }
  const end = Math.min(content.length, start + most);
  response.write(content.subarray(start, end), () => {
    if (end < content.length) response.destroy();
    else response.end();
  });
}
const breakOff = (request: IncomingMessage, response: ServerResponse) =>
  answer(request, response, 100_000);
const refuse =
  (code: number, headers: Record<string, string> = {}) =>
  (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(code, headers).end();
  };

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-remote-"));
  server = createServer((request, response) => {
    requests.push(request.headers.range);
    (script.shift() ?? answer)(request, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (typeof address === "object" && address !== null)
    url = `http://127.0.0.1:${address.port}/data.bin`;
});
afterAll(async () => {
  server.close();
  await rm(directory, { recursive: true });
});
beforeEach(() => {
  requests = [];
  script = [];
  version = '"one"';
});

let number = 0;
const fresh = (): string => join(directory, `sub${++number}`, "data.bin");

test("a file is brought once, checked, and then found where it lies", async () => {
  const path = fresh();
  expect(await fetchFile({ url, path, sha256 })).toEqual({ path, bytes: 300_000, cached: false });
  expect(content.equals(await readFile(path))).toBe(true);
  expect(await readdir(join(path, ".."))).toEqual(["data.bin"]);
  expect((await fetchFile({ url, path, sha256 })).cached).toBe(true);
  expect(requests.length).toBe(1);
});

test("a transfer that breaks off goes on where it was", async () => {
  script = [breakOff, breakOff];
  const path = fresh();
  await fetchFile({ url, path, sha256, pause: 0.001 });
  expect(content.equals(await readFile(path))).toBe(true);
  expect(requests).toEqual([undefined, "bytes=100000-", "bytes=200000-"]);
});

test("what is left of another version is not mixed with the new one", async () => {
  const path = fresh();
  script = [breakOff, refuse(403)];
  await expect(fetchFile({ url, path, pause: 0.001 })).rejects.toThrow("403");
  version = '"two"';
  await fetchFile({ url, path, sha256, pause: 0.001 });
  expect(content.equals(await readFile(path))).toBe(true);
  expect(requests.at(-1)).toBe("bytes=100000-");
});

test("a busy server is asked again, one that says no is not", async () => {
  script = [refuse(503), refuse(429, { "retry-after": "0" }), refuse(500)];
  expect((await fetchFile({ url, path: fresh(), pause: 0.001 })).bytes).toBe(300_000);
  requests = [];
  script = [refuse(404)];
  await expect(fetchFile({ url, path: fresh(), pause: 0.001 })).rejects.toThrow(
    `${url}: 404 Not Found`,
  );
  expect(requests.length).toBe(1);
});

test("it gives up after so many failures in a row, and can be stopped", async () => {
  script = Array.from({ length: 9 }, () => refuse(503));
  await expect(fetchFile({ url, path: fresh(), pause: 0.001, attempts: 3 })).rejects.toThrow(
    "failed 3 times in a row",
  );
  expect(requests.length).toBe(3);
  script = Array.from({ length: 9 }, () => refuse(503));
  const signal = AbortSignal.timeout(50);
  await expect(fetchFile({ url, path: fresh(), pause: 30, signal })).rejects.toThrow(/timeout/i);
});

test("content that is not what was wanted is removed", async () => {
  const path = fresh();
  const wrong = "0".repeat(64);
  await expect(fetchFile({ url, path, sha256: wrong })).rejects.toThrow(
    `sha256 is ${sha256}, not ${wrong}, as it came from`,
  );
  expect(await readdir(join(path, ".."))).toEqual([]);
});

test("calls for one file at once bring it once, whole", async () => {
  const path = fresh();
  const all = await Promise.all(Array.from({ length: 5 }, () => fetchFile({ url, path, sha256 })));
  expect(all.filter(({ cached }) => !cached).length).toBe(1);
  expect(requests.length).toBe(1);
  expect(await readdir(join(path, ".."))).toEqual(["data.bin"]);
});

test("a process that ended is not waited for, one that lives is, and no longer than told", async () => {
  const path = fresh();
  await mkdir(join(path, ".."), { recursive: true });
  // No process has this number: it is above the largest that Linux gives.
  await writeFile(`${path}.partial.lock`, `99999999 ${hostname()}`);
  expect((await fetchFile({ url, path, sha256 })).cached).toBe(false);
  const held = fresh();
  await mkdir(join(held, ".."), { recursive: true });
  await writeFile(`${held}.partial.lock`, `${process.ppid} ${hostname()}`);
  await expect(fetchFile({ url, path: held, deadline: 0.2 })).rejects.toThrow(
    `process ${process.ppid} of ${hostname()} has not brought it within 0.2 s`,
  );
  const stopped = AbortSignal.timeout(50);
  await expect(fetchFile({ url, path: held, signal: stopped })).rejects.toThrow("timeout");
});

test("a directory is no file that is there already", async () => {
  await expect(fetchFile({ url, path: directory })).rejects.toThrow(
    "is a directory or no regular file",
  );
});

test("patience without an end is patience, and numbers that are none are refused", async () => {
  const slowly = async (_: string, { signal }: RequestInit): Promise<Response> => {
    await new Promise((done) => setTimeout(done, 20));
    signal?.throwIfAborted();
    return new Response("abc");
  };
  const endless = { silence: Infinity, deadline: Infinity, attempts: 1 };
  expect((await fetchFile({ url, path: fresh(), fetch: slowly, ...endless })).bytes).toBe(3);
  for (const odd of [{ attempts: NaN }, { attempts: 0 }, { silence: NaN }, { deadline: -1 }]) {
    const [[name, value] = []] = Object.entries(odd);
    await expect(fetchFile({ url, path: fresh(), fetch: slowly, ...odd })).rejects.toThrow(
      `${name} ${value}`,
    );
  }
  await expect(fetchFile({ url, path: fresh(), fetch: slowly, pause: NaN })).rejects.toThrow(
    "pause NaN s; use 0 or more",
  );
});

test("a digest in capitals is the same, and one that is none does not cost the file", async () => {
  const path = fresh();
  await fetchFile({ url, path, sha256: sha256.toUpperCase() });
  await expect(fetchFile({ url, path, sha256: `sha256:${sha256}` })).rejects.toThrow(
    "is not 64 hex digits",
  );
  expect(content.equals(await readFile(path))).toBe(true);
});
