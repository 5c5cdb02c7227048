import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import {
  type RingRef,
  type RingShape,
  createFileRing,
  createRunDirectory,
  createSharedRing,
  nextFrame,
  openRing,
  removeRunDirectory,
  roomFor,
} from "@trireme/dataloader/node";
import { afterEach, expect, test } from "vitest";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});
function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "trireme-ring-"));
  folders.push(folder);
  return folder;
}
const shape: RingShape = {
  name: "share 0, slice 0",
  firstStep: 5,
  slots: 2,
  slotWords: 4,
  readers: [3, 8],
};
const rings: [string, (of: RingShape) => RingRef][] = [
  ["shared", createSharedRing],
  ["file", (of) => createFileRing(of, join(temporary(), "a.ring"))],
];

test.each(rings)(
  "readers of a %s ring get every frame in order, whatever their pace",
  async (_, create) => {
    const order = fc.array(fc.constantFrom<"write" | 0 | 1>("write", 0, 1), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(order, fc.integer({ min: 1, max: 4 }), async (turns, slots) => {
        const ref = create({ ...shape, slots });
        // Each has the ring open for itself, as on threads or in processes of their own.
        const writer = openRing(ref);
        const readers = [openRing(ref), openRing(ref)] as const;
        const taken: [number, number] = [0, 0];
        let written = 0;
        for (const turn of turns) {
          if (turn === "write") {
            if (written - Math.min(...taken) >= slots) continue;
            await roomFor(writer, 5 + written, 1);
            writer.write(1 + (written % 4), (frame) => frame.fill(written));
            written++;
          } else if (taken[turn] < written) {
            const frame = await nextFrame(readers[turn], turn, 1);
            expect([...frame!]).toEqual(new Array(1 + (taken[turn] % 4)).fill(taken[turn]));
            taken[turn]++;
          }
        }
        writer.close("ended");
        for (const [reader, ring] of readers.entries()) {
          for (; taken[reader]! < written; taken[reader]!++)
            expect((await nextFrame(ring, reader, 1))![0]).toBe(taken[reader]);
          expect(await nextFrame(ring, reader, 1)).toBeUndefined();
        }
        for (const ring of [writer, ...readers]) ring.release();
      }),
      { numRuns: 30 },
    );
  },
);

test.each(rings)(
  "waits at a %s ring end with a change, and name who is missing at their deadline",
  async (_, create) => {
    const ref = create({ ...shape, slots: 1 });
    const [writer, reader] = [openRing(ref), openRing(ref)];
    const waiting = nextFrame(reader, 0, 10);
    setTimeout(() => writer.write(1, (frame) => frame.fill(7)), 20);
    expect([...(await waiting)!]).toEqual([7]);
    const room = roomFor(writer, 6, 10);
    setTimeout(() => void reader.take(1), 20);
    await room;
    writer.write(1, (frame) => frame.fill(8));
    await expect(roomFor(writer, 7, 0.03)).rejects.toThrow(
      "rank 3, 8 has not taken step 6 of share 0, slice 0 for 0.03 s",
    );
    reader.take(0);
    await expect(roomFor(writer, 7, 0.03)).rejects.toThrow("rank 8 has not taken step 6");
    await expect(nextFrame(reader, 0, 0.03)).rejects.toThrow(
      "the data constructor of share 0, slice 0 has not delivered step 7 to rank 3 for 0.03 s; its last was 6",
    );
    const failing = nextFrame(reader, 0, 10);
    setTimeout(() => writer.close("failed"), 20);
    await expect(failing).rejects.toThrow("the loader of share 0, slice 0 gave up before step 7");
    await expect(roomFor(writer, 7, 10)).rejects.toThrow("was closed before step 7");
    writer.release();
    reader.release();
    reader.release();
  },
);

test("a ring's file is never one that exists", () => {
  const path = join(temporary(), "a.ring");
  createFileRing(shape, path);
  expect(() => createFileRing(shape, path)).toThrow("EEXIST");
});

test("folders of processes that are gone are swept, those of the living are left", () => {
  const base = temporary();
  // No process has this number: it is above the largest that Linux gives.
  mkdirSync(join(base, "trireme-loader-99999999-left-behind"));
  mkdirSync(join(base, `trireme-loader-${process.ppid}-alive`));
  mkdirSync(join(base, "something-else"));
  const mine = createRunDirectory(base);
  const names = readdirSync(base);
  expect(names.length).toBe(3);
  expect(names.some((name) => name.includes("left-behind"))).toBe(false);
  removeRunDirectory(mine);
  expect(readdirSync(base).length).toBe(2);
});

test("a reader whose signal was aborted is told so though a frame is there, and deadlines are numbers", async () => {
  const ring = openRing(createSharedRing(shape));
  ring.write(1, (frame) => frame.fill(7));
  const stopped = AbortSignal.abort(new Error("enough"));
  await expect(nextFrame(ring, 0, 1, stopped)).rejects.toThrow("enough");
  expect(ring.taken(0)).toBe(0);
  for (const seconds of [NaN, 0, -1])
    await expect(nextFrame(ring, 0, seconds)).rejects.toThrow(`a deadline of ${seconds} s`);
});

test.runIf(process.getuid?.() === 0 && process.seteuid !== undefined)(
  "another user's folder of a process that is gone keeps nobody from starting",
  () => {
    const base = temporary();
    chmodSync(base, 0o1777);
    mkdirSync(join(base, "trireme-loader-99999999-theirs", "rings"), { recursive: true });
    process.seteuid!(65_534);
    try {
      expect(readdirSync(base)).toContain("trireme-loader-99999999-theirs");
      removeRunDirectory(createRunDirectory(base));
    } finally {
      process.seteuid!(0);
    }
  },
);
