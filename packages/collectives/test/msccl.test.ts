import { type CollectivePlan, createPlan, ringAllReduce } from "@trireme/collectives";
import {
  type MscclProgram,
  mscclFromPlan,
  parseMsccl,
  printMsccl,
  verifyMsccl,
} from "@trireme/collectives/msccl";
import { expect, test } from "vitest";
import { variants } from "./plan-variants.ts";

/**
 * All-pairs all-reduce as in MSCCL's examples: each GPU sends its buffer's part j to scratch slot i
 * of GPU j, which adds the n - 1 scratch parts to its own and sends the sum to all.
 */
function allPairs(n: number): string {
  const gpus = Array.from({ length: n }, (_, rank) => {
    const peers = Array.from({ length: n - 1 }, (__, k) => (rank + 1 + k) % n);
    const step = (
      s: number,
      type: string,
      src: string,
      dst: string,
      dep = "-1 -1",
      has = 0,
    ): string => {
      const [srcbuf, srcoff] = src.split(" ");
      const [dstbuf, dstoff] = dst.split(" ");
      const [depid, deps] = dep.split(" ");
      return `<step s="${s}" type="${type}" srcbuf="${srcbuf}" srcoff="${srcoff}" dstbuf="${dstbuf}" dstoff="${dstoff}" cnt="${type === "nop" ? 0 : 1}" depid="${depid}" deps="${deps}" hasdep="${has}"/>`;
    };
    const blocks = peers.map((peer, k) => {
      const slot = (rank + n - peer - 1) % n;
      return [
        `<tb id="${k}" send="${peer}" recv="${peer}" chan="0">`,
        step(0, "s", `i ${peer}`, `s ${slot}`),
        step(1, "r", `i ${rank}`, `s ${k}`, "-1 -1", 1),
        step(2, "s", `i ${rank}`, `i ${rank}`, `${n - 1} ${n - 2}`),
        step(3, "r", `i ${peer}`, `i ${peer}`),
        "</tb>",
      ].join("");
    });
    const reduce = [
      `<tb id="${n - 1}" send="-1" recv="-1" chan="0">`,
      ...peers.map((__, k) => step(k, "re", `s ${k}`, `i ${rank}`, `${k} 1`, 1)),
      "</tb>",
    ];
    return `<gpu id="${rank}" i_chunks="${n}" o_chunks="${n}" s_chunks="${n - 1}">${blocks.join("")}${reduce.join("")}</gpu>`;
  });
  return `<algo name="all-pairs" proto="LL" nchunksperloop="${n}" nchannels="1" ngpus="${n}" inplace="1" coll="allreduce" minBytes="0" maxBytes="65536">\n<!-- one block per peer -->\n${gpus.join("\n")}\n</algo>`;
}

test("the all-pairs all-reduce on eight GPUs parses, verifies and prints as it was", () => {
  const program = parseMsccl(allPairs(8));
  expect(program).toMatchObject({ protocol: "LL", collective: "allreduce", inPlace: true });
  expect(verifyMsccl(program)).toMatchObject({
    ok: true,
    sent: Array.from({ length: 8 }, () => 14),
  });
  expect(parseMsccl(printMsccl(program))).toEqual(program);
});

/** The program with one step changed. */
function edited(
  program: MscclProgram,
  gpu: number,
  block: number,
  step: number,
  change: object,
): MscclProgram {
  const copy = structuredClone(program);
  Object.assign(copy.gpus[gpu]!.blocks[block]!.steps[step]!, change);
  return copy;
}

test("a missing dependency is a race, a circular one a deadlock", () => {
  const program = parseMsccl(allPairs(4));
  const reason = (broken: MscclProgram): string => {
    const verified = verifyMsccl(broken);
    return verified.ok ? "ok" : verified.reason;
  };
  const none = { dependBlock: -1, dependStep: -1 };
  expect(reason(edited(program, 1, 0, 2, none))).toMatch(/race|twice|holds/);
  expect(reason(edited(program, 1, 3, 0, none))).toMatch(/race|holds nothing/);
  expect(reason(edited(program, 1, 0, 1, { dependBlock: 3, dependStep: 2 }))).toMatch(
    /^deadlock: gpu \d tb \d waits at step/,
  );
  expect(reason(edited(program, 1, 3, 1, { sourceOffset: 0 }))).toMatch(/race|twice/);
  expect(reason(edited(program, 2, 0, 0, { sourceOffset: 2 }))).toMatch(
    /adds chunk 2 to chunk 3|race/,
  );
  expect(reason(edited(program, 0, 2, 3, { type: "nop" }))).toMatch(/never received|must hold/);
});

test("every plan the format has words for is exported, verifies and survives the round trip", () => {
  for (const ranks of [1, 2, 3, 4, 5, 8]) {
    for (const options of variants(ranks)) {
      const plan: CollectivePlan = createPlan(options);
      if (
        plan.switches > 0 ||
        /broadcast|reduce$|^scatter|^gather|barrier/.test(plan.operation.replace("all-reduce", ""))
      ) {
        continue;
      }
      const program = mscclFromPlan(plan);
      expect([options, verifyMsccl(program)]).toMatchObject([options, { ok: true }]);
      expect(parseMsccl(printMsccl(program))).toEqual(program);
    }
  }
});

test("what MSCCL cannot hold is refused", () => {
  expect(() =>
    mscclFromPlan(createPlan({ operation: "broadcast", algorithm: "binomial", ranks: 4 })),
  ).toThrow("MSCCL has all-reduce, all-gather, reduce-scatter, all-to-all");
  expect(() =>
    mscclFromPlan(createPlan({ operation: "all-reduce", algorithm: "sharp", ranks: 4 })),
  ).toThrow("with 1 switches");
  expect(() => mscclFromPlan(ringAllReduce(200))).toThrow("398 steps, at most 256");
});

test.each([
  ["", "line 1: no element"],
  ["<algo", "line 1: not XML"],
  ['<algo name="a"', "line 1: not XML"],
  ['<algo name="a">\n<gpu id="0">\n</algo>', "line 3: </algo> closes <gpu> of line 2"],
  ['<algo name="a" name="b"/>', "line 1: <algo> has name twice"],
  ["<plan/>", "line 1: <plan>, expected <algo>"],
  ['<algo name="a" coll="allreduce" nchannels="1" ngpus="2"/>', 'ngpus="2", but there are 0'],
  ['<algo name="a" coll="alreduce" nchannels="1"/>', 'did you mean "allreduce"?'],
  ['<algo name="a" coll="allreduce" nchannels="x"/>', 'line 1: nchannels="x" is not an integer'],
  ['<algo name="a" nchannels="1"/>', "line 1: <algo> has no coll"],
  [
    '<algo name="a" coll="allreduce" nchannels="1">\n<gpu id="1" i_chunks="1" o_chunks="1"/>\n</algo>',
    'line 2: <gpu id="1"> must be numbered 0..0',
  ],
  [
    '<algo name="a" coll="allreduce" nchannels="1">\n<gpu id="0" i_chunks="1" o_chunks="1"><tb id="0" send="3" recv="-1" chan="0"/></gpu>\n</algo>',
    'gpu 0 tb 0: send="3" must be another of the 1 GPUs',
  ],
  [
    '<algo name="a" coll="allreduce" nchannels="1"><gpu id="0" i_chunks="1" o_chunks="1"><tb id="0" chan="0"><step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="4" cnt="1"/></tb></gpu></algo>',
    "gpu 0 tb 0 step 0: o[4..4] lies outside 1 chunks",
  ],
  [
    '<algo name="a" coll="allreduce" nchannels="1"><gpu id="0" i_chunks="1" o_chunks="1"><tb id="0" chan="0"><step s="0" type="sned"/></tb></gpu></algo>',
    'unknown step type "sned"',
  ],
  ["<algo></algo><algo></algo>", "line 1: <algo> after the end of <algo>"],
])("malformed XML %j is one error with its place", (xml, message) => {
  expect(() => parseMsccl(xml)).toThrow(message);
});
