import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type GlobalTensor,
  type Holding,
  defineLayout,
  dtypeBits,
  holders,
  layoutRanks,
  parseCheckpointIndex,
  placeTensors,
  readPlan,
  savePlan,
} from "@trireme/checkpoint";
import { checkRandomPairs, randomLayout } from "./random-pairs.ts";
import { layers, smallModel } from "./small-model.ts";

function keyOf({ tensor, shape, from }: Holding): string {
  return `${smallModel[tensor]!.name} of [${shape.join(", ")}] from ${from}`;
}

test("random pairs of layouts: saved by one and read by the other, bit for bit as sharded directly", () => {
  checkRandomPairs(4, 5);
});

test("a rank's own holdings are those of the whole placement that name it", () => {
  const rng = createRng(3);
  for (let i = 0; i < 20; i++) {
    const layout = randomLayout(rng);
    const all = placeTensors(smallModel, layout);
    for (let rank = 0; rank < layoutRanks(layout); rank++) {
      const mine = all.filter((holding) => holders(holding).includes(rank)).map(keyOf);
      expect(placeTensors(smallModel, layout, rank).map(keyOf)).toEqual(mine);
    }
  }
});

test("of a data-parallel group one reads what all hold, and the reading is shared out", () => {
  const layout = defineLayout({ layers, tp: 2, dp: 4, cp: 2 });
  const { index } = savePlan(smallModel, layout);
  const plan = readPlan(index, smallModel, layout);
  const size = index.reduce((sum, { shape, dtype }) => {
    return sum + shape.reduce((a, b) => a * b, dtypeBits(dtype) / 8);
  }, 0);
  // Norms and routers are read once by each of the two tensor-parallel ranks, nothing oftener.
  const read = plan.bytes.reduce((a, b) => a + b, 0);
  expect(read).toBeGreaterThan(size);
  expect(read).toBeLessThan(1.5 * size);
  for (const { holding, reader } of plan.assemblies) {
    expect(holding.member).toBeUndefined();
    expect(holders(holding).length).toBe(8);
    expect(holders(holding)).toContain(reader);
  }
  const busy = [...plan.bytes].filter((bytes) => bytes > 0);
  expect(busy.length).toBe(16);
  // Greedy by load: no reader has more than the mean and one largest tensor beside it.
  expect(Math.max(...busy)).toBeLessThan(read / 16 + 5 * 12 * 20 * 4);
});

test("with ZeRO each member reads its own share, and no replica is saved twice", () => {
  const layout = defineLayout({ layers, dp: 4, zero: 3 });
  const plan = readPlan(savePlan(smallModel, layout).index, smallModel, layout);
  for (const { holding, reader } of plan.assemblies) {
    // Scalars alone are held by all.
    const scalar = smallModel[holding.tensor]!.shape.length === 0;
    expect(holders(holding)).toEqual(scalar ? [0, 1, 2, 3] : [reader]);
  }
});

test("what the checkpoint does not have is refused by name, what is not asked for is listed", () => {
  const layout = defineLayout({ layers });
  const { index } = savePlan(smallModel, layout);
  const without = index.filter(({ name }) => name !== "layers.3.proj");
  expect(() => readPlan(without, smallModel, layout)).toThrow(
    /^the checkpoint has no tensor "layers\.3\.proj" among \d+; did you mean "layers\.\d\.proj"\?$/,
  );
  const weights = smallModel.filter(({ state }) => state === undefined);
  const { unused } = readPlan(index, weights, layout);
  expect(unused.length).toBe(smallModel.length - weights.length);
  const wrong = smallModel.map((t) => (t.name === "positions" ? { ...t, shape: [12, 5] } : t));
  expect(() => readPlan(index, wrong, layout)).toThrow(
    'tensor "positions" is BF16 [5, 12] in the checkpoint; BF16 [12, 5] is asked for',
  );
  const narrow = smallModel.map((t) =>
    t.name === "positions" ? { ...t, dtype: "F32" as const } : t,
  );
  expect(() => readPlan(index, narrow, layout)).toThrow("F32 [5, 12] is asked for");
  const holed = index.map((t) =>
    t.name === "positions"
      ? { ...t, pieces: t.pieces.map((p) => ({ ...p, region: { start: [0, 0], shape: [4, 12] } })) }
      : t,
  );
  expect(() => readPlan(holed, smallModel, layout)).toThrow(
    'the checkpoint has 48 of the 60 elements wanted of tensor "positions"',
  );
});

test("layouts and tensors that cannot be are refused with the numbers and the rule", () => {
  const layout = (o: object) => () => defineLayout({ layers, ...o });
  expect(layout({ tp: 0 })).toThrow("tp 0: a degree is an integer of at least 1");
  expect(layout({ zero: 4 })).toThrow("zero 4: it is 0, 1, 2 or 3");
  expect(layout({ pp: 4 })).toThrow("6 layers do not divide into 4 stages; give stageLayers");
  expect(layout({ pp: 2, stageLayers: [3, 2] })).toThrow("stageLayers has 5 layers together");
  expect(layout({ pp: 2, stageLayers: [6] })).toThrow("pp(2) x vpp(1) is 2");
  expect(layout({ pp: 2, stageLayers: [7, -1] })).toThrow("stageLayers has -1");
  expect(layout({ pp: 2, stageRank: [0, 0] })).toThrow("stageRank gives rank 0 2 stages");
  expect(layout({ dp: 2, ep: 3 })).toThrow("expertTp(1) x ep(3) does not divide the 2 ranks");
  expect(layout({ dp: 2 ** 20, tp: 2 ** 20 })).toThrow("more than 2^31-1");
  expect(layout({ layers: -1 })).toThrow("layers -1");
  expect(() => placeTensors(smallModel, defineLayout({ layers, tp: 3 }))).toThrow(
    'tensor "layers.0.qkv" has 2 units to share among 3 ranks',
  );
  const place = (change: Partial<GlobalTensor>) => () =>
    placeTensors(
      [{ name: "a", dtype: "F32", shape: [4, 6], place: 0, ...change }],
      defineLayout({ layers }),
    );
  expect(place({ place: 6 })).toThrow('tensor "a" of [4, 6] is of layer 6; the layout has 6');
  expect(place({ dtype: "F4" })).toThrow("must be whole bytes");
  expect(place({ tensorParallel: { dim: 2 } })).toThrow("along dim 2; it has 2 dims");
  expect(place({ tensorParallel: { dim: 0, parts: [{ size: 3 }] } })).toThrow(
    "parts of 3 together",
  );
  expect(place({ tensorParallel: { dim: 0, parts: [{ size: 4, units: 3 }] } })).toThrow("4 in 3");
  expect(place({ tensorParallel: { dim: 0 }, experts: { dim: 0 } })).toThrow(
    "along dim 0 by tensor",
  );
  expect(place({ experts: { index: 2, count: 2 } })).toThrow("expert 2 of 2");
  expect(place({ shape: [2 ** 40, 2 ** 40] })).toThrow("more than 2^53-1 bits");
  expect(() => placeTensors(smallModel.concat(smallModel), defineLayout({ layers }))).toThrow(
    "comes twice",
  );
  expect(() => placeTensors(smallModel, defineLayout({ layers, dp: 2 }), 2)).toThrow(
    "rank 2 is none of 0..1",
  );
});

test("an index is refused for a hole, an overlap, a path, or a field that is missing", () => {
  const index = (pieces: string, shape = "[4]"): Uint8Array =>
    new TextEncoder().encode(
      `{"version":1,"tensors":[{"name":"a","dtype":"F32","shape":${shape},"pieces":[${pieces}]}]}`,
    );
  const piece = (start: number, size: number, file = "f"): string =>
    `{"file":"${file}","start":[${start}],"shape":[${size}]}`;
  const parse = (text: Uint8Array) => () => parseCheckpointIndex(text);
  expect(parse(index(`${piece(0, 2)},${piece(2, 2)}`))()[0]!.pieces.length).toBe(2);
  expect(parse(index("", "[0]"))()).toHaveLength(1);
  expect(parse(index(piece(0, 3)))).toThrow("regions cover 3 of the 4 elements of [4]");
  expect(parse(index(`${piece(0, 3)},${piece(2, 2)}`))).toThrow("regions [0:3] and [2:4] overlap");
  expect(parse(index(`${piece(0, 2)},${piece(0, 2)}`))).toThrow("overlap");
  expect(parse(index(`${piece(0, 4)},${piece(2, 0)}`))).toThrow("region [2:2] is no part of [4]");
  expect(parse(index(piece(2, 4)))).toThrow("region [2:6] is no part of [4]");
  expect(parse(index(piece(0, 4, "../f")))).toThrow('file name "../f"');
  expect(parse(index('{"file":"f","start":[0]}'))).toThrow('tensor "a" has no list "shape"');
  expect(parse(index(piece(0, 4), "[9007199254740992]"))).toThrow("no integer in 0..2^53-1");
  expect(parse(new TextEncoder().encode("{}"))).toThrow("not of version 1");
  expect(parse(new TextEncoder().encode("{"))).toThrow("no strict JSON");
});
