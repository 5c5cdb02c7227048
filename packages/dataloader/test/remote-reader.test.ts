import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { httpObject, openRemote } from "@trireme/dataloader/node";

const content = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 97) % 251));
type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let url = "";
let directory = "";
let ranges: (string | undefined)[] = [];
/** What the server does with the next requests; after them it answers as it should. */
let script: Answer[] = [];
let version: string | undefined = '"one"';
let held: Buffer = content;

/** Answers a range, breaking off after `most` bytes of it. */
function serve(request: IncomingMessage, response: ServerResponse, most = Infinity): void {
  const [, from = "", to = ""] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  const same = request.headers["if-range"] === undefined || request.headers["if-range"] === version;
  if (version !== undefined) response.setHeader("etag", version);
  if (!same) {
    response.writeHead(200, { "content-length": held.length }).end(held);
    return;
  }
  if (Number(from) >= held.length) {
    response.writeHead(416, { "content-range": `bytes */${held.length}` }).end();
    return;
  }
  const part = held.subarray(Number(from), Number(to) + 1);
  const end = Number(from) + part.length - 1;
  response.writeHead(206, {
    "content-length": part.length,
    "content-range": `bytes ${from}-${end}/${held.length}`,
  });
  response.write(part.subarray(0, most), () => {
    if (part.length > most) response.destroy();
    else response.end();
  });
}
const breakOff =
  (most: number): Answer =>
  (request, response) =>
    serve(request, response, most);
const refuse =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_, response) =>
    void response.writeHead(code, headers).end();
const never: Answer = () => undefined;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-remote-"));
  server = createServer((request, response) => {
    ranges.push(request.headers.range);
    (script.shift() ?? serve)(request, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (typeof address === "object" && address !== null)
    url = `http://127.0.0.1:${address.port}/data.bin`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true });
});
beforeEach(() => {
  [ranges, script, version, held] = [[], [], '"one"', content];
});

let folders = 0;
const cacheOf = (limit: number) => ({ directory: join(directory, `c${++folders}`), limit });
const quick = { pause: 0.001, blockBytes: 1000 };
const open = (options = {}, signal?: AbortSignal) =>
  openRemote(httpObject({ url }), { ...quick, ...options }, signal);
async function bytesAt(
  reader: Awaited<ReturnType<typeof open>>,
  offset: number,
  length: number,
): Promise<Buffer> {
  const into = Buffer.alloc(length);
  await reader.read(offset, into);
  return into;
}

test("any range is what the file has there, whatever breaks on the way", async () => {
  const reader = await open();
  expect([reader.size, reader.version, reader.name]).toEqual([100_000, '"one"', url]);
  await fc.assert(
    fc.asyncProperty(
      fc.nat(99_999),
      fc.nat(5000),
      fc.array(fc.constantFrom(breakOff(1), breakOff(300), refuse(503), refuse(429)), {
        maxLength: 4,
      }),
      async (offset, most, answers) => {
        script = answers;
        const length = Math.min(most, content.length - offset);
        const found = await bytesAt(reader, offset, length);
        expect(found.equals(content.subarray(offset, offset + length))).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

test("a block is asked for once, goes on where it broke off, and is shared by its readers", async () => {
  const reader = await open();
  ranges = [];
  script = [breakOff(100), breakOff(250)];
  const found = await Promise.all([bytesAt(reader, 2100, 50), bytesAt(reader, 2900, 100)]);
  expect(
    found.map((part, i) => part.equals(content.subarray([2100, 2900][i], [2150, 3000][i]))),
  ).toEqual([true, true]);
  await bytesAt(reader, 2000, 1000);
  expect(ranges).toEqual(["bytes=2000-2999", "bytes=2100-2999", "bytes=2350-2999"]);
});

test("blocks are kept on the disk for later runs, up to a limit", async () => {
  const cache = cacheOf(3000);
  await bytesAt(await open({ cache }), 0, 2500);
  ranges = [];
  const again = await open({ cache });
  expect((await bytesAt(again, 0, 2500)).equals(content.subarray(0, 2500))).toBe(true);
  expect(ranges).toEqual(["bytes=0-0"]);
  // A fourth block drives out the one that was used longest ago.
  await bytesAt(again, 50_000, 1000);
  const files = await readdir(cache.directory);
  expect(files.map((file) => file.replace(/.*-/, "")).sort()).toEqual(["1", "2", "50"]);
  // A block that was cut on the disk is brought anew.
  const damaged = join(
    cache.directory,
    files.find((file) => file.endsWith("-1"))!,
  );
  await writeFile(damaged, (await readFile(damaged)).subarray(1));
  const third = await open({ cache });
  expect((await bytesAt(third, 1000, 1000)).equals(content.subarray(1000, 2000))).toBe(true);
  expect((await stat(damaged)).size).toBe(1000);
  await expect(open({ cache: cacheOf(1999) })).rejects.toThrow(
    "a cache of 1999 bytes does not hold two blocks of 1000; give it 2000 at least",
  );
});

test("a file that changes is refused, and its old blocks are not taken for the new", async () => {
  const cache = cacheOf(1e6);
  const reader = await open({ cache });
  await bytesAt(reader, 0, 10);
  version = '"two"';
  held = Buffer.from(content).fill(7);
  await expect(bytesAt(reader, 5000, 10)).rejects.toThrow(
    `${url}: changed since it was opened (it was 100000 bytes, "one", is "two"); open it anew`,
  );
  const anew = await open({ cache });
  expect([...(await bytesAt(anew, 0, 3))]).toEqual([7, 7, 7]);
  // Without a tag, the size tells.
  version = undefined;
  const untagged = await open();
  held = content.subarray(0, 50_000);
  await expect(bytesAt(untagged, 0, 10)).rejects.toThrow("it was 100000 bytes, is 50000 bytes");
  await expect(bytesAt(untagged, 90_000, 10)).rejects.toThrow("changed since it was opened");
});

test("answers that do not pass are told at once, others after so many tries", async () => {
  script = [refuse(404)];
  await expect(open()).rejects.toThrow(`${url}: 404 Not Found`);
  script = Array.from({ length: 9 }, () => refuse(500));
  ranges = [];
  await expect(open({ attempts: 3 })).rejects.toThrow("failed 3 times in a row");
  expect(ranges.length).toBe(3);
  script = [(_, response) => void response.writeHead(200).end(content)];
  await expect(open()).rejects.toThrow("the server gives whole files only, no ranges");
  const reader = await open();
  script = [refuse(403)];
  await expect(bytesAt(reader, 0, 1)).rejects.toThrow("403");
  await expect(bytesAt(reader, 99_999, 2)).rejects.toThrow(
    "bytes 99999 to 100001 are outside 0 to 100000",
  );
});

test("nothing hangs: silence, a deadline, a signal and closing each end a read", async () => {
  script = [never];
  // Silence is a failure like others: the next try is answered.
  expect((await open({ silence: 0.05 })).size).toBe(100_000);
  script = [never, never];
  await expect(open({ silence: 0.05, attempts: 2 })).rejects.toThrow("no byte for 0.05 s");
  script = [never];
  await expect(open({ deadline: 0.05 })).rejects.toThrow(`${url}: not done within 0.05 s`);
  script = [refuse(503, { "retry-after": "50" })];
  await expect(open({ deadline: 0.05 })).rejects.toThrow("not done within 0.05 s");
  script = [never];
  await expect(open({}, AbortSignal.timeout(30))).rejects.toThrow(/timeout/i);

  const reader = await open();
  script = [never];
  const abort = new AbortController();
  const waiting = reader.read(0, new Uint8Array(10), abort.signal);
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  const other = reader.read(0, new Uint8Array(10));
  reader.close();
  await expect(other).rejects.toThrow("closed");
  await expect(bytesAt(reader, 0, 1)).rejects.toThrow("closed");
});

test("an empty file is one", async () => {
  held = Buffer.alloc(0);
  const reader = await open();
  expect(reader.size).toBe(0);
  await reader.read(0, new Uint8Array(0));
});
