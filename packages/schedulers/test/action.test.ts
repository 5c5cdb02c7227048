import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Action,
  actionKinds,
  parseAction,
  parseActions,
  printAction,
  printActions,
} from "@trireme/schedulers";

test("the actions of torch's own test read and print the same", () => {
  const text = "1F0 2I1 0W3 0B3 1UNSHARD 3RESHARD 2SEND_B2 1RECV_F1";
  expect(printActions(parseActions(text))).toBe(text);
  expect(parseAction("2SEND_B2")).toEqual({ stage: 2, kind: "SEND_B", microbatch: 2 });
  expect(parseAction("1UNSHARD")).toEqual({ stage: 1, kind: "UNSHARD", microbatch: -1 });
});

const index = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const action: fc.Arbitrary<Action> = fc
  .tuple(index, fc.constantFrom(...actionKinds), index)
  .map(([stage, kind, microbatch]) => ({
    stage,
    kind,
    microbatch: ["UNSHARD", "RESHARD", "REDUCE_GRAD"].includes(kind) ? -1 : microbatch,
  }));

test("parsing what was printed gives the same actions", () => {
  fc.assert(
    fc.property(action, (a) => {
      expect(parseAction(printAction(a))).toEqual(a);
    }),
  );
});

test("overlapped pairs survive printing and parsing", () => {
  const pair = fc.tuple(index, index, index, index).map(([s, m, t, n]): Action[] => [
    { stage: s, kind: "F", microbatch: m, overlap: "first" },
    { stage: t, kind: "B", microbatch: n, overlap: "second" },
  ]);
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          pair,
          action.map((a) => [a]),
        ),
      ),
      (groups) => {
        const actions = groups.flat();
        expect(parseActions(printActions(actions))).toEqual(actions);
      },
    ),
  );
});

test.each([
  ["", "is not <stage><kind>"],
  ["F0", "is not <stage><kind>"],
  ["0X1", "unknown kind X"],
  ["0SEND1", "unknown kind SEND"],
  ["0F", "F needs a microbatch, as in 0F0"],
  ["1UNSHARD2", "UNSHARD takes no microbatch, as in 1UNSHARD"],
  ["-1F0", "is not <stage><kind>"],
  ["0F0 ", "is not <stage><kind>"],
  ["99999999999F0", "indices go up to 2147483647"],
  ["(0F3;3B1)OVERLAP_F_B", "read overlapped pairs with parseActions"],
])("refuses %j", (text, message) => {
  expect(() => parseAction(text)).toThrow(message);
});

test("a pair joins a forward and a backward", () => {
  expect(() => parseActions("(0B3;3F1)OVERLAP_F_B")).toThrow("joins an F and a B");
  expect(() => printActions([{ stage: 0, kind: "F", microbatch: 0, overlap: "first" }])).toThrow(
    "0F0 is marked as half of an overlapped pair",
  );
});
