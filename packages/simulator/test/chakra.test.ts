import { BinaryReader } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { simulateStep, simulatedStep } from "@trireme/simulator";
import {
  type ChakraNode,
  type ChakraWorkload,
  chakraNodeTypes,
  chakraCollectives,
  decodeChakra,
  encodeChakra,
  astraSimInputs,
  parseTextWorkload,
  playText,
  playWorkload,
  printTextWorkload,
  toChakra,
  toTextWorkload,
} from "@trireme/simulator/chakra";
import { defineCluster } from "@trireme/topology";
import { defineModel, definePlan } from "@trireme/workload";

const cluster = defineCluster({ host: "dgx-h100", hosts: 4 });
const model = defineModel({ layers: 8, hidden: 512, heads: 8, vocab: 1024, context: 256 });
const plan = definePlan(model, {
  tp: 2,
  dp: 2,
  pp: 4,
  globalBatch: 16,
  zero: 1,
  sequenceParallel: true,
  overlapPointToPoint: true,
});
const step = { model, plan, cluster, unfold: true };

test("a step goes to execution traces and back, and takes the same time", () => {
  const workload = toChakra(simulatedStep(step).program);
  const read: ChakraWorkload = {
    groups: workload.groups,
    traces: workload.traces.map((trace) => decodeChakra(encodeChakra(trace))),
  };
  expect(read).toEqual(workload);
  const count = workload.traces.reduce((sum, { nodes }) => sum + nodes.length, 0);
  const played = playWorkload(read);
  expect(played.operations).toBe(count);
  // Messages of a rank leave one after the other in the step; here each has its own way.
  expect(played.time / simulateStep(step).step).toBeCloseTo(1, 2);
  const priced = playWorkload(read, { cluster });
  expect(priced.operations).toBe(count);
  expect(priced.time).toBeGreaterThan(0);
});

test("the wire has the published field numbers, each message behind its length", () => {
  const trace = toChakra(simulatedStep(step).program).traces[0]!;
  const reader = new BinaryReader(encodeChakra(trace));
  const metadata = new BinaryReader(reader.bytes());
  expect(metadata.tag()[0]).toBe(1);
  expect(metadata.string()).toBe("0.0.4");
  const first = new BinaryReader(reader.bytes());
  const fields: number[] = [];
  while (first.pos < first.len) {
    const [field, type] = first.tag();
    fields.push(field);
    first.skip(type);
  }
  // id, name, type, duration_micros, attributes; the first waits for nothing.
  expect([...new Set(fields)]).toEqual([1, 2, 3, 7, 10]);
  expect(() => decodeChakra(encodeChakra(trace).subarray(0, 100))).toThrow("cut off");
  expect(() => decodeChakra(new Uint8Array())).toThrow("empty execution trace");
});

function node(id: number, o: Partial<ChakraNode>): ChakraNode {
  return {
    id,
    name: `n${id}`,
    type: chakraNodeTypes.compute,
    controlDependencies: [],
    dataDependencies: [],
    duration: 1,
    attributes: {},
    ...o,
  };
}

function workloadOf(...ranks: ChakraNode[][]): ChakraWorkload {
  return { traces: ranks.map((nodes) => ({ version: "", nodes })), groups: { both: [0, 1] } };
}

const sum = {
  type: chakraNodeTypes.collective,
  attributes: { comm_type: 0, comm_size: 8, pg_name: "both" },
};

test("what cannot run is refused with the operation or the cycle", () => {
  const play =
    (...ranks: ChakraNode[][]) =>
    (): unknown =>
      playWorkload(workloadOf(...ranks));
  expect(play([node(0, { dataDependencies: [1] }), node(1, { dataDependencies: [0] })])).toThrow(
    'in a circle: rank 0 "n0" after rank 0 "n1" after rank 0 "n0"',
  );
  expect(play([node(0, sum)], [])).toThrow('collective 0 of group "both", but rank 1 has only 0');
  const other = { ...sum, attributes: { ...sum.attributes, comm_size: 9 } };
  expect(play([node(0, sum)], [node(0, other)])).toThrow("comm_size 8, but rank 1");
  const send = { type: chakraNodeTypes.send, attributes: { comm_dst: 1, comm_size: 8 } };
  const receive = { type: chakraNodeTypes.receive, attributes: { comm_src: 0, comm_size: 8 } };
  expect(play([node(0, send)], [])).toThrow("rank 1 never receives it");
  expect(play([], [node(0, receive)])).toThrow("rank 0 never sends it");
  expect(play([node(0, { type: 9 })])).toThrow("nodes of type 9 are not supported");
  expect(play([node(0, { dataDependencies: [7] })])).toThrow("waits for node 7");
  const crossed = [
    [node(0, sum), node(1, { ...send, dataDependencies: [0] })],
    [node(0, receive), node(1, { ...sum, dataDependencies: [0] })],
  ];
  expect(play(...crossed)).toThrow("in a circle");
  expect(playWorkload(workloadOf([node(0, send)], [node(0, receive)])).operations).toBe(2);
});

test("kernels of a rank take turns, communication runs beside them", () => {
  const played = playWorkload(
    workloadOf(
      [node(0, {}), node(1, {}), node(2, { ...sum, duration: 5 })],
      [node(0, { ...sum, duration: 5, dataDependencies: [1] }), node(1, { duration: 3 })],
    ),
  );
  // Rank 1 comes to the sum after 3 s.
  expect(played.time).toBe(8);
});

/** Two layers of four microbatches, between what is done once. */
const layers = [
  "attention -1 1000000 ALLREDUCE 16777216 1000000 ALLREDUCE 16777216 500000 NONE 0 0",
  "mlp\t-1\t3000000000\tALLGATHER\t1024\t1\tALLTOALL_EP\t4096\t1\tREDUCESCATTER\t2048\t100",
];
const text = [
  "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 2 vpp: 4 ga: 4 all_gpus: 32 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 1048576",
  "10",
  "gather -1 1 NONE 0 1 NONE 0 1 ALLGATHER 4096 0",
  ...Array.from({ length: 4 }, () => layers).flat(),
  "loss -1 0 ALLREDUCE 64 0 NONE 0 0 NONE 0 0",
].join("\n");

test("a text workload is read, printed and played, with times beyond 2^31 nanoseconds", () => {
  const w = parseTextWorkload(text);
  expect(w).toMatchObject({ tp: 8, pp: 2, microbatches: 4, allGpus: 32, boundary: 1_048_576 });
  expect(w.layers[2]!.forward.compute).toBe(3);
  expect(w.layers[2]!.inputGradient).toMatchObject({ collective: "ALLTOALL", group: "EP" });
  expect(parseTextWorkload(printTextWorkload(w))).toEqual(w);
  const { time, operations, timeline } = playText(w, cluster);
  // Six computations and five collectives a microbatch, four each around them, and the update.
  expect(operations).toBe(4 * 11 + 2 * 4 + 1);
  expect(timeline.ranks).toBe(2);
  // Five forwards of 3 s pass the pipeline.
  expect(time).toBeGreaterThan(15);
  expect(time).toBeLessThan(16);
  const alone = parseTextWorkload("DATA\n1\nl -1 5 NONE 0 5 NONE 0 5 NONE 0 1\n");
  expect(playText(alone, cluster)).toMatchObject({ operations: 4 });
});

test("microbatches are found in the lines, or the header is refused", () => {
  const w = parseTextWorkload(text);
  expect(() => playText({ ...w, microbatches: 3 }, cluster)).toThrow(
    "ga is 3, but 10 layers do not hold 3 times the same in a row",
  );
  // A lone microbatch is all there is.
  expect(playText({ ...w, microbatches: 1 }, cluster).operations).toBe(4 * 11 + 2 * 4 + 1);
});

test("a plan as text has each microbatch's computing, and the gradients once", () => {
  const w = toTextWorkload({ model, plan, cluster, pipelineRank: 1 });
  expect(parseTextWorkload(printTextWorkload(w))).toMatchObject({ tp: 2, pp: 4, allGpus: 16 });
  const { description } = simulatedStep({ ...step, unfold: false });
  const parts = ["F", "B"] as const;
  const once = description.sync.optimizer[1]!;
  const each = parts.flatMap((kind) => description.parts[1]![kind]);
  const expected = once + w.microbatches * each.reduce((time, { duration }) => time + duration, 0);
  const passes = w.layers.flatMap((l) => [l.forward, l.inputGradient, l.weightGradient]);
  expect(passes.reduce((time, { compute }) => time + compute, 0)).toBeCloseTo(expected, 12);
  const reduced = passes.filter((pass) => pass.collective === "REDUCESCATTER" && pass.group === "");
  expect(reduced.length).toBeGreaterThan(0);
  expect(playText(w, cluster).time / simulateStep(step).step).toBeCloseTo(1, 0);
  const split = definePlan(model, { cp: 2, globalBatch: 8 });
  expect(() => toTextWorkload({ model, plan: split, cluster })).toThrow(
    "context parallelism (cp 2)",
  );
  const gathered = definePlan(model, { dp: 2, zero: 3, globalBatch: 8 });
  expect(() => toTextWorkload({ model, plan: gathered, cluster })).toThrow("(zero 3)");
  const vocabulary = definePlan(model, { pp: 2, globalBatch: 8, vocabulary: "two-barriers" });
  expect(() => toTextWorkload({ model, plan: vocabulary, cluster })).toThrow(
    "cannot say vocabulary two-barriers; leave it out",
  );
});

test("a network of equal ways prices rings in closed form, one communication of a rank at a time", () => {
  const network = { bandwidth: 1e9, latency: 1e-6 };
  const ring = { ...sum, attributes: { ...sum.attributes, comm_size: 1e6 } };
  const alone = playWorkload(workloadOf([node(0, ring)], [node(0, ring)]), { network });
  expect(alone.time).toBeCloseTo(2 * (1e-6 + 5e5 / 1e9), 12);
  const gather = {
    ...ring,
    attributes: { ...ring.attributes, comm_type: chakraCollectives["all-gather"] },
  };
  // Its size is that of one part.
  const gathered = playWorkload(workloadOf([node(0, gather)], [node(0, gather)]), { network });
  expect(gathered.time).toBeCloseTo(1e-6 + 1e6 / 1e9, 12);
  const both = workloadOf([node(0, ring), node(1, gather)], [node(0, ring), node(1, gather)]);
  expect(playWorkload(both, { network }).time).toBe(alone.time);
  const serial = playWorkload(both, { network, communications: 1 }).time;
  expect(serial).toBeCloseTo(alone.time + gathered.time, 12);
  expect(() => playWorkload(both, { network, cluster })).toThrow("give one");
  expect(() => playWorkload(both, { network, communications: 0 })).toThrow("at least 1");
  expect(() => playWorkload(both, { network: { bandwidth: 0, latency: 0 } })).toThrow("0 B/s");
});

test("what ASTRA-sim takes for all ranks is so here, and no exported group has that name", () => {
  const of = (name: string): Partial<ChakraNode> => ({
    ...sum,
    attributes: { ...sum.attributes, pg_name: name },
  });
  expect(playWorkload(workloadOf([node(0, of("0"))], [node(0, of(""))])).operations).toBe(2);
  const workload = toChakra(simulatedStep(step).program);
  expect(Object.keys(workload.groups)).not.toContain("0");
  const inputs = astraSimInputs(workload, { bandwidth: 2 ** 30, latency: 1e-6 });
  expect(inputs["network-configuration"]).toContain("npus_count: [ 16 ]\nbandwidth: [ 1.0 ]");
  expect(JSON.parse(inputs["comm-group-configuration"])).toEqual(workload.groups);
});

test("bad text is refused with its line", () => {
  const parse = (from: string, to: string) => (): unknown =>
    parseTextWorkload(text.replace(from, to));
  expect(parse("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMR")).toThrow(
    'did you mean "HYBRID_TRANSFORMER"?',
  );
  expect(parse("vpp: 4", "vp: 4")).toThrow('line 1, header "vp": did you mean');
  expect(parse("\n10\n", "\n3\n")).toThrow("there are 10 lines of layers");
  expect(parse("ALLREDUCE", "ALLREDUC")).toThrow('did you mean "ALLREDUCE"?');
  expect(parse("all_gpus: 32", "all_gpus: 30")).toThrow("not a multiple of tp(8) x pp(2) = 16");
  expect(parse("16777216", "-5")).toThrow('line 4, forward bytes "-5"');
  expect(parse("checkpoints: 0", "checkpoints: 2")).toThrow("recomputed layers are not supported");
  expect(() => parseTextWorkload("")).toThrow("line 1, parallelism");
});
