import { SnapshotCopier } from "@trireme/runtime/node";
import { expect, it } from "vitest";

const shared = (length: number): Uint8Array<SharedArrayBuffer> =>
  new Uint8Array(new SharedArrayBuffer(length));

it("copies ranges of shared memory, several requests in their order", async () => {
  const copier = new SnapshotCopier();
  try {
    const [from, first, second] = [shared(1e6).fill(1), shared(1e6), shared(1e6)];
    await copier.copy([{ from: from.subarray(0, 5), to: first.subarray(10, 15) }]);
    expect([...first.subarray(8, 17)]).toEqual([0, 0, 1, 1, 1, 1, 1, 0, 0]);
    await Promise.all([
      copier.copy([{ from, to: first }]),
      copier.copy([{ from: first, to: second }]),
    ]);
    expect(second.every((byte) => byte === 1)).toBe(true);
    await copier.copy([]);
  } finally {
    await copier.close();
  }
});

it("refuses what does not fit, and whatever comes once it has ended", async () => {
  const copier = new SnapshotCopier();
  await expect(copier.copy([{ from: shared(3), to: shared(4) }])).rejects.toThrow(
    "3 bytes do not go into 4",
  );
  const [from, to] = [shared(2 ** 26), shared(2 ** 26)];
  const pending = copier.copy(Array.from({ length: 50 }, () => ({ from, to })));
  const [, ended] = await Promise.allSettled([copier.close(), pending]);
  expect(ended).toMatchObject({
    status: "rejected",
    reason: { message: "the thread that copies snapshots has ended" },
  });
  await expect(copier.copy([])).rejects.toThrow("has ended");
});
