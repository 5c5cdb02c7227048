import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type RunEvent, runLoop } from "@trireme/runtime";
import { jsonLinesFile } from "@trireme/runtime/node";
import { otlpMetrics } from "@trireme/runtime/opentelemetry";
import { servePrometheus } from "@trireme/runtime/prometheus";
import {
  encodeEvent,
  frameRecord,
  readRecords,
  tensorBoardFile,
} from "@trireme/runtime/tensorboard";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeRuntime } from "./fake-runtime.ts";
import { MemoryStore } from "./memory-store.ts";
import { smallLoader, smallRun } from "./small-run.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "trireme-metrics-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** Runs ten steps with one save and two evaluations, and tells what happened. */
async function run(on: (event: RunEvent) => void): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  await runLoop({
    run: smallRun({ evaluate: { every: 5 } }),
    runtime: new FakeRuntime(),
    loader: smallLoader(),
    validation: smallLoader(2),
    store: new MemoryStore(),
    on(event) {
      events.push(event);
      on(event);
    },
  });
  return events;
}

function last<K extends RunEvent["kind"]>(events: readonly RunEvent[], kind: K) {
  return events.findLast((event): event is Extract<RunEvent, { kind: K }> => event.kind === kind)!;
}

describe("lines of JSON", () => {
  it("begin a line of their own behind one that a crash cut short", async () => {
    const path = join(root, "metrics.jsonl");
    writeFileSync(path, '{"kind":"stop"}\n{"kind":"st');
    const sink = jsonLinesFile(path);
    sink.record({ kind: "checkpoint", step: 3, bytes: 8 });
    await sink.close();
    const lines = readFileSync(path, "utf8").split("\n");
    expect(lines).toHaveLength(4);
    expect(JSON.parse(lines[2]!)).toMatchObject({ kind: "checkpoint", step: 3 });
  });

  it("are refused after the close, by name", async () => {
    const path = join(root, "metrics.jsonl");
    const sink = jsonLinesFile(path);
    await sink.close();
    const late = (): void => sink.record({ kind: "checkpoint", step: 3, bytes: 8 });
    expect(late).toThrow(`cannot write ${path}: it was closed`);
  });

  it("are one an event, appended to what is there", async () => {
    const path = join(root, "deep", "metrics.jsonl");
    for (let time = 0; time < 2; time++) {
      const sink = jsonLinesFile(path);
      await run(sink.record);
      await sink.close();
      await sink.close();
    }
    const lines = readFileSync(path, "utf8").trim().split("\n");
    const parsed: unknown[] = lines.map((line): unknown => JSON.parse(line));
    expect(parsed).toHaveLength(2 * (1 + 10 + 2 + 1 + 1));
    expect(parsed[1]).toMatchObject({ kind: "step", step: 0, tokens: 64, tokensPerSecond: 128 });
    expect(parsed[1]).not.toHaveProperty("timeline");
  });

  it("that cannot be written say where and why", () => {
    expect(() => jsonLinesFile(root)).toThrow(/^cannot write .*trireme-metrics.*EISDIR/);
  });
});

describe("a Prometheus endpoint", () => {
  it("listens on loopback, and answers with what was recorded last", async () => {
    const server = await servePrometheus({ labels: { run: "small" } });
    try {
      expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
      const events = await run(server.record);
      const text = await (await fetch(server.url)).text();
      const valueOf = (name: string): number =>
        Number(new RegExp(`^${name}\\{run="small"\\} (.*)$`, "m").exec(text)?.[1]);
      expect(valueOf("trireme_step")).toBe(10);
      expect(valueOf("trireme_loss")).toBe(last(events, "step").loss);
      expect(valueOf("trireme_validation_loss")).toBe(last(events, "evaluate").loss);
      expect(valueOf("trireme_tokens_total")).toBe(640);
      expect(valueOf("trireme_checkpoints_total")).toBe(1);
      expect(valueOf("trireme_checkpoint_bytes")).toBe(last(events, "checkpoint").bytes);
      expect(text).toContain("# HELP trireme_step_seconds time of a step");
      expect((await fetch(server.url.replace("metrics", "other"))).status).toBe(404);
      expect((await fetch(server.url, { method: "POST" })).status).toBe(404);
    } finally {
      await server.close();
    }
    await expect(fetch(server.url)).rejects.toThrow("fetch failed");
  });

  it("says which port it cannot have, and two in one process do not disturb each other", async () => {
    const [one, two] = [await servePrometheus(), await servePrometheus()];
    try {
      one.record({ kind: "stop", step: 3, reason: "done" });
      expect(await (await fetch(one.url)).text()).toMatch(/^trireme_step 3$/m);
      expect(await (await fetch(two.url)).text()).toMatch(/^trireme_step 0$/m);
      const port = Number(new URL(one.url).port);
      await expect(servePrometheus({ port })).rejects.toThrow(
        `cannot listen on 127.0.0.1:${port}: listen EADDRINUSE`,
      );
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  });
});

describe("a request that names no path", () => {
  it.each(["//", "http://", "*"])(
    "is answered by the endpoint, which lives on: GET %s",
    async (path) => {
      const server = await servePrometheus();
      const { port } = new URL(server.url);
      try {
        const answer = await new Promise<string>((resolve, reject) => {
          const socket = connect(Number(port), "127.0.0.1", () => {
            socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
          });
          let text = "";
          socket.on("data", (piece) => (text += piece.toString()));
          socket.on("error", reject);
          socket.on("end", () => resolve(text));
        });
        expect(answer).toMatch(/^HTTP\/1\.1 40[04] /);
        expect((await fetch(server.url)).status).toBe(200);
      } finally {
        await server.close();
      }
    },
  );

  it.each([70_000, -1, 1.5])("and a port %s that is none are refused in one line", async (port) => {
    await expect(servePrometheus({ port })).rejects.toMatchObject({
      code: "LISTEN",
      message: expect.stringContaining(`cannot listen on 127.0.0.1:${port}: `),
    });
  });
});

describe("OpenTelemetry", () => {
  it.each([0, -1, Number.NaN, Infinity])("refuses an interval of %s s", (interval) => {
    expect(() => otlpMetrics({ interval })).toThrow(`interval ${interval} s must be above 0`);
  });

  it("pushes to a collector, at the latest when it is closed", async () => {
    const requests: { path: string; body: string }[] = [];
    const collector = createServer((request: IncomingMessage, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        requests.push({ path: request.url ?? "", body: Buffer.concat(chunks).toString() });
        response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
      });
    });
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
    const { port } = collector.address() as AddressInfo;
    try {
      const url = `http://127.0.0.1:${port}/v1/metrics`;
      const sink = otlpMetrics({ url, interval: 60, attributes: { run: "small" } });
      const events = await run(sink.record);
      await sink.close();
      expect(requests.map(({ path }) => path)).toEqual(["/v1/metrics"]);
      const values = new Map<string, unknown>();
      const { resourceMetrics } = JSON.parse(requests[0]!.body) as Exported;
      for (const { metrics } of resourceMetrics.flatMap((resource) => resource.scopeMetrics)) {
        for (const { name, gauge, sum } of metrics) {
          const point = (gauge ?? sum)!.dataPoints[0]!;
          expect(point.attributes).toEqual([{ key: "run", value: { stringValue: "small" } }]);
          values.set(name, point.asDouble ?? point.asInt);
        }
      }
      expect(values.get("trireme.loss")).toBe(last(events, "step").loss);
      expect(values.get("trireme.tokens")).toBe(640);
      expect(values.get("trireme.step")).toBe(10);
      expect(values.get("trireme.validation_loss")).toBe(last(events, "evaluate").loss);
    } finally {
      collector.closeAllConnections();
      collector.close();
    }
  });
});

interface Points {
  readonly dataPoints: readonly {
    readonly asDouble?: number;
    readonly asInt?: number;
    readonly attributes: unknown;
  }[];
}

interface Exported {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly gauge?: Points;
        readonly sum?: Points;
      }[];
    }[];
  }[];
}

/** The fields of a message by number, nested ones as bytes. */
function fieldsOf(bytes: Uint8Array): Map<number, unknown[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, unknown[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const value =
      type === WireType.Bit64
        ? reader.double()
        : type === WireType.Bit32
          ? reader.float()
          : type === WireType.Varint
            ? Number(reader.int64())
            : reader.bytes();
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

function scalarsOf(event: Map<number, unknown[]>): Record<string, unknown> {
  const [summary] = event.get(5) as Uint8Array[];
  return Object.fromEntries(
    (fieldsOf(summary!).get(1) as Uint8Array[]).map((value) => {
      const [tag, simple] = [fieldsOf(value).get(1)![0], fieldsOf(value).get(2)![0]];
      return [new TextDecoder().decode(tag as Uint8Array), simple];
    }),
  );
}

describe("a TensorBoard file", () => {
  it("has a record for each event that has numbers, which reads back", async () => {
    const sink = tensorBoardFile(root);
    const events = await run(sink.record);
    await sink.close();
    expect(readdirSync(root)).toEqual([expect.stringMatching(/^events\.out\.tfevents\.\d{10}\./)]);
    const records = [...readRecords(readFileSync(sink.path))].map(fieldsOf);
    expect(records).toHaveLength(1 + 10 + 2 + 1);
    expect(new TextDecoder().decode(records[0]!.get(3)![0] as Uint8Array)).toBe("brain.Event:2");
    const steps = records.slice(1).filter((record) => "train/loss" in scalarsOf(record));
    expect(steps.map((record) => record.get(2))).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((s) => [s]),
    );
    const { loss, learningRate } = last(events, "step");
    expect(scalarsOf(steps[9]!)).toMatchObject({
      "train/loss": Math.fround(loss),
      "train/learning_rate": Math.fround(learningRate),
      "train/tokens_per_second": 128,
    });
    const [wallTime] = steps[0]!.get(1) as number[];
    expect(Math.abs(wallTime! - Date.now() / 1e3)).toBeLessThan(60);
  });

  it("has the checksums of the format", () => {
    // CRC-32C of "123456789" is e3069283 (RFC 3720, appendix B.4 lists others of the kind: 32 zeros give
    // 8a9136aa); the mask turns it right by 15 bits and adds a282ead8.
    const zeros = frameRecord(new Uint8Array(32));
    const masked = (((0x8a9136aa >>> 15) | (0x8a9136aa << 17)) + 0xa282ead8) >>> 0;
    expect(new DataView(zeros.buffer).getUint32(12 + 32, true)).toBe(masked);
  });

  it("cut short is read up to the cut, and refused where a bit has flipped", () => {
    const one = frameRecord(encodeEvent({ wallTime: 1, step: 2 ** 40, scalars: [] }));
    const two = new Uint8Array([...one, ...one]);
    expect(fieldsOf([...readRecords(two)][1]!).get(2)).toEqual([2 ** 40]);
    for (let cut = one.length; cut < two.length; cut++) {
      expect([...readRecords(two.subarray(0, cut))]).toHaveLength(1);
    }
    for (let at = 0; at < one.length; at++) {
      const flipped = one.slice();
      flipped[at]! ^= 4;
      expect(() => [...readRecords(flipped)]).toThrow(
        /has masked CRC-32C [0-9a-f]{8}; the file says/,
      );
    }
  });
});
