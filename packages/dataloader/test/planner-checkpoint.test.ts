import {
  type MultiSourceIdentity,
  loadProgram,
  placeTree,
  restoreMultiSource,
} from "@trireme/dataloader";
import { expect, test } from "vitest";

const identity: MultiSourceIdentity = {
  sources: { a: "1", b: "2" },
  globalBatch: 4,
  seed: 7,
  sequence: 16,
};
const planner = loadProgram({ tree: placeTree([]), sources: ["a", "b"], globalBatch: 4 }).plan();
const stored = {
  version: 1,
  ...identity,
  planner: planner.draw(planner.draw(planner.start()).next).next,
  snapshots: { b: { position: 3, cursor: 99 } },
};

test("a stored state gives its planner and snapshots back, after JSON", () => {
  const { planner: state, snapshots } = restoreMultiSource(
    JSON.parse(JSON.stringify(stored)),
    identity,
  );
  expect(state).toEqual(stored.planner);
  expect(state.step).toBe(2);
  expect(snapshots).toEqual(stored.snapshots);
});

test("a state of other data or another order is refused with all that differs", () => {
  const restore = (change: object) => () => restoreMultiSource({ ...stored, ...change }, identity);
  expect(restore({ version: 2 })).toThrow("version 2; this loader reads version 1");
  expect(() => restoreMultiSource(null, identity)).toThrow("version undefined");
  expect(restore({ globalBatch: 8, seed: 1 })).toThrow(
    "globalBatch 8 there, 4 here; seed 1 there, 7 here; resume with the same, or start anew",
  );
  expect(restore({ sources: { a: "1", b: "3", c: "4" } })).toThrow(
    "source b has other data; source c only there",
  );
  expect(restore({ sources: { a: "1" } })).toThrow("source b only here");
  expect(restore({ sources: { b: "2", a: "1" } })).toThrow("the sources come in another order");
});

test("a damaged state is refused, not read on from somewhere", () => {
  const { planner: good } = stored;
  const damage = (change: object) => () =>
    restoreMultiSource({ ...stored, planner: { ...good, ...change } }, identity);
  expect(damage({ step: 3 })).toThrow("loader state is damaged: step 3 with 8 samples drawn");
  expect(damage({ step: -1 })).toThrow("damaged");
  expect(damage({ mix: { ...good.mix, taken: [8] } })).toThrow("damaged");
  expect(damage({ mix: { ...good.mix, taken: [5, 4] } })).toThrow("damaged");
  expect(damage({ mix: { ...good.mix, due: [0, null] } })).toThrow("damaged");
  expect(() => restoreMultiSource({ ...stored, planner: undefined }, identity)).toThrow("damaged");
  expect(damage({ mix: undefined })).toThrow("damaged");
  expect(damage({ mix: { ...good.mix, since: undefined } })).toThrow("damaged");
  expect(damage({ mix: { ...good.mix, since: 9 } })).toThrow("damaged");
  expect(damage({ mix: { ...good.mix, taken: [4.5, 3.5] } })).toThrow("damaged");
  expect(() =>
    restoreMultiSource({ ...stored, snapshots: { b: { position: "3" } } }, identity),
  ).toThrow('the snapshot of source b is at position "3"');
});
