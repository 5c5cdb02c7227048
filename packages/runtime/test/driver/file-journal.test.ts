import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DriverRecord } from "@trireme/runtime/driver";
import { fileJournal } from "@trireme/runtime/node";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "trireme-journal-"));
  file = join(directory, "driver.journal");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const record = (step: number, reason = "r"): DriverRecord => ({
  hosts: new Map([[0, { incarnation: "a", ranks: 8, endpoint: { address: "h", port: 1 } }]]),
  stopRequested: true,
  stop: { generation: 1, bounds: new Map([[0, step]]), step },
  end: { ok: true, reason, step },
});

/** The record and term that the next leader finds. */
async function found(): Promise<{ record: DriverRecord | undefined; term: number }> {
  const leadership = await fileJournal(directory).lead();
  await leadership.release();
  return { record: leadership.record, term: leadership.term };
}

async function write(steps: readonly number[], options = {}): Promise<void> {
  const leadership = await fileJournal(directory, options).lead();
  for (const step of steps) await leadership.append(record(step));
  await leadership.release();
}

describe("a journal in a file", () => {
  it("hands on the last record, and a greater term each time", async () => {
    expect(await found()).toEqual({ record: undefined, term: 1 });
    await write([1, 2]);
    expect(await found()).toEqual({ record: record(2), term: 3 });
    expect(await found()).toEqual({ record: record(2), term: 4 });
  });

  it("cut at any byte, as a crash leaves it, gives the last record that is whole", async () => {
    await write([1]);
    const one = statSync(file).size;
    await write([2, 3]);
    const whole = readFileSync(file);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: one, max: whole.length }), async (length) => {
        writeFileSync(file, whole.subarray(0, length));
        const lines = whole.subarray(0, length).toString().split("\n").length - 1;
        // Lines: term 1, step 1, term 2, step 2, step 3.
        expect((await found()).record).toEqual(record(lines < 4 ? 1 : lines < 5 ? 2 : 3));
      }),
      { numRuns: 25 },
    );
  });

  it("with zeros at its end, as a file system may leave it, gives the last record", async () => {
    await write([1]);
    const { size } = statSync(file);
    truncateSync(file, size + 500);
    expect((await found()).record).toEqual(record(1));
    // What was torn is gone for good: appending works.
    await write([2]);
    expect((await found()).record).toEqual(record(2));
  });

  it("damaged before its end is an error that says where", async () => {
    await write([1, 2, 3]);
    const bytes = readFileSync(file);
    const second = bytes.indexOf("\n") + 1;
    bytes[second + 40]! ^= 1;
    writeFileSync(file, bytes);
    await expect(found()).rejects.toThrow(
      `${file} is damaged at byte ${second} of ${bytes.length}, with records after it`,
    );
  });

  it("is written anew when it has grown long, and loses nothing", async () => {
    const steps = Array.from({ length: 100 }, (_, i) => i);
    await write(steps, { longest: 2000 });
    expect(statSync(file).size).toBeLessThanOrEqual(2000);
    expect((await found()).record).toEqual(record(99));
  });

  it("has one leader at a time: the next waits until the one before is gone", async () => {
    const first = await fileJournal(directory).lead();
    const order: string[] = [];
    const second = fileJournal(directory)
      .lead()
      .then((leadership) => {
        order.push("second");
        return leadership;
      });
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    await first.append(record(7));
    order.push("first");
    await first.release();
    const leadership = await second;
    expect(order).toEqual(["first", "second"]);
    expect(leadership.record).toEqual(record(7));
    await leadership.release();
  });

  it("can be waited for until a signal says no more", async () => {
    const first = await fileJournal(directory).lead();
    await expect(fileJournal(directory).lead(AbortSignal.timeout(50))).rejects.toThrow("timeout");
    await first.release();
  });

  it("that another process writes to ends the leadership", async () => {
    const leadership = await fileJournal(directory).lead();
    writeFileSync(file, "something\n", { flag: "a" });
    await expect(leadership.append(record(1))).rejects.toThrow("another one writes to it");
    expect(leadership.lost.aborted).toBe(true);
    await expect(leadership.append(record(1))).rejects.toThrow("another one writes to it");
    await leadership.release();
  });

  it("that cannot be written is an error with the path", async () => {
    writeFileSync(join(directory, "plain"), "");
    await expect(fileJournal(join(directory, "plain", "deeper")).lead()).rejects.toThrow(
      /^cannot make .*plain\/deeper: ENOTDIR/,
    );
  });
});
