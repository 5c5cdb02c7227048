import { expect, test } from "vitest";
import { bisection, domainsOf, routeFlows } from "@trireme/topology";
import {
  FormatError,
  clusterFromInventory,
  expandHostList,
  parseKubernetesNodes,
  parseSlurmNodes,
  parseSlurmTopology,
  slurmFabric,
} from "@trireme/topology/formats";
import { cut, edit, vector } from "./vectors.ts";

const topology = vector("topology.conf");
const nodes = vector("scontrol-nodes.txt");
const kubernetes = vector("nodes.json");

test("host lists: ranges keep their zeros, several brackets multiply", () => {
  const expand = (list: string) => {
    const result = expandHostList(list);
    return result.ok ? result.names : result.reason;
  };
  expect(expand("gpu[008-010,12],login1")).toEqual([
    "gpu008",
    "gpu009",
    "gpu010",
    "gpu12",
    "login1",
  ]);
  expect(expand("r[1-2]n[0-1]x")).toEqual(["r1n0x", "r1n1x", "r2n0x", "r2n1x"]);
  expect(expand("a[1-2")).toBe('host list "a[1-2" has an unmatched "["');
  expect(expand("a]")).toBe('host list "a]" has an unmatched "]"');
  expect(expand("a[2-1]")).toContain("runs backwards");
  expect(expand("a[0-99999999]")).toContain("over more than 1000000 numbers");
  expect(expand("a[1-x]")).toContain('"1-x" is no range');
  expect(expand("a,,b")).toBe("host list has an empty name");
});

test("a tree of switches: levels, nodes in order, a fabric as wide as the ports below", () => {
  const tree = parseSlurmTopology(topology);
  if (tree.kind !== "tree") throw new Error("expected a tree");
  expect(tree.nodes).toHaveLength(64);
  expect(tree.nodes[40]).toBe("gpu042");
  expect(tree.switches.map((s) => [s.name, s.level])).toEqual([
    ["leaf1", 1],
    ["leaf2", 1],
    ["leaf3", 1],
    ["leaf4", 1],
    ["spine1", 2],
    ["spine2", 2],
    ["core", 3],
  ]);
  const fabric = slurmFabric(tree, { nics: 2, bandwidth: 25e9 });
  expect(fabric.graph.endpoints).toBe(128);
  expect(bisection(fabric)).toBeCloseTo(64 * 25e9, -3);
  expect(routeFlows(fabric, { from: [0, 0], to: [1, 127] }).offsets).toEqual(
    Int32Array.of(0, 2, 8),
  );
  const thin = slurmFabric(tree, { bandwidth: 25e9, oversubscription: 4 });
  expect(bisection(thin)).toBeCloseTo((32 * 25e9) / 4, -3);
});

test("blocks", () => {
  expect(parseSlurmTopology(vector("topology-block.conf"))).toMatchObject({
    kind: "block",
    sizes: [18, 36],
    blocks: [{ name: "b1" }, { name: "b2" }],
  });
});

test.each([
  ["nothing", "# empty\n", "x:1: the file defines neither switches nor blocks"],
  ["cut in a pair", cut(topology, "=gpu[017"), 'x:3: "Nodes" is no Key=Value'],
  ["cut in a list", cut(topology, "49]"), "x:4: Nodes: host list"],
  ["cut at a continuation", cut(topology, "\n    Switches=leaf3"), "x:8: the last line ends in a"],
  [
    "cut before the leaves' parents",
    cut(topology, "SwitchName=leaf2") + "SwitchName=s Switches=leaf[1-2]\n",
    'x:3: switch "s" has the undefined switch "leaf2"; did you mean "leaf1"?',
  ],
  [
    "an unknown key",
    edit(topology, "Nodes=", "Node="),
    'x:2: unknown key "Node"; did you mean "Nodes"?',
  ],
  ["a key twice", edit(topology, "LinkSpeed=400", "Nodes=b"), 'x:3: the key "Nodes" stands twice'],
  [
    "a switch without a name",
    edit(topology, "SwitchName=leaf3 ", ""),
    "x:4: the line has no SwitchName",
  ],
  ["a switch twice", edit(topology, "leaf2 ", "leaf1 "), 'x:3: switch "leaf1" stands twice'],
  [
    "a switch of nothing",
    edit(topology, " Switches=spine[1-2]", ""),
    'x:10: switch "core" has neither',
  ],
  [
    "a node under two",
    edit(topology, "017-032", "016-032"),
    'x:3: node "gpu016" is under "leaf1" and',
  ],
  [
    "a switch under two",
    edit(topology, "leaf3,leaf4", "leaf2,leaf4"),
    'x:8: switch "leaf2" is under "spine1" and "spine2"',
  ],
  ["a circle", edit(topology, "Nodes=gpu[001-016]", "Switches=core"), "is under itself"],
  ["words", "SwitchName leaf1\n", 'x:1: "SwitchName" is no Key=Value'],
  ["a block of nothing", "BlockName=b1\n", 'x:1: block "b1" has no Nodes'],
  ["bad block sizes", "BlockName=b Nodes=a\nBlockSizes=4,x\n", 'x:2: BlockSizes="4,x"'],
])("topology.conf: %s gets one error with line and reason", (_, text, message) => {
  expect(() => parseSlurmTopology(text, "x")).toThrow(message);
  expect(() => parseSlurmTopology(text, "x")).toThrow(/^x:\d+: [^\n]+$/);
});

test("scontrol show nodes: GPUs by type, states, and who takes work", () => {
  const list = parseSlurmNodes(nodes);
  expect(list.map((n) => [n.name, n.accelerator, n.accelerators, n.ready])).toEqual([
    ["gpu001", "a100", 8, true],
    ["gpu002", "a100", 8, true],
    ["gpu003", "a100", 8, false],
    ["h001", "h100", 8, false],
    ["login1", undefined, 0, true],
  ]);
  expect(list[0]).toMatchObject({
    cpus: 256,
    memory: 2_063_937 * 2 ** 20,
    partitions: ["train", "debug"],
    features: ["ib", "nvlink"],
  });
  expect(list[3]!.states).toEqual(["DOWN", "*"]);
});

test("the one-line form is the same", () => {
  const lines = nodes
    .trim()
    .split(/\n\n+/)
    .map((record) => record.replaceAll(/\n\s+/g, " "));
  expect(parseSlurmNodes(`${lines.join("\n")}\n`)).toEqual(parseSlurmNodes(nodes));
});

test("a cluster from Slurm's nodes: one pool a type, names in its order", () => {
  const hosts = { a100: "dgx-a100-80", h100: "dgx-h100" };
  const { cluster, names } = clusterFromInventory(parseSlurmNodes(nodes), { hosts });
  expect(cluster).toMatchObject({ hosts: 4, devices: 32, name: "3xdgx-a100-80+1xdgx-h100" });
  expect(names).toEqual(["gpu001", "gpu002", "gpu003", "h001"]);
  const ready = clusterFromInventory(parseSlurmNodes(nodes), { hosts, readyOnly: true });
  expect(ready.names).toEqual(["gpu001", "gpu002"]);
  expect(() =>
    clusterFromInventory(parseSlurmNodes(nodes), { hosts: { a10: "dgx-a100-80" } }),
  ).toThrow('accelerators "a100", for which no host is given; did you mean "a10"?');
  expect(() =>
    clusterFromInventory(parseSlurmNodes(nodes), { hosts: { a100: "gh200", h100: "gh200" } }),
  ).toThrow("host gpu001 has 8 accelerators, but gh200 has 1");
  expect(() => clusterFromInventory([], { hosts })).toThrow("none of 0 hosts has accelerators");
});

test.each([
  ["nothing", "", "x:1: no NodeName= in the file"],
  ["an error message", "slurm_load_node error: Unable to contact\n", "x:1: "],
  ["cut after the name", cut(nodes, " Arch"), 'x:1: node "gpu001": State is missing'],
  ["cut before the state", cut(nodes, "   State"), "State is missing"],
  ["cut in a key", cut(nodes, "Alloc=0"), 'x:2: "CPU" is no Key=Value'],
  ["a start that is missing", nodes.slice(nodes.indexOf("   CPUAlloc")), "before any NodeName="],
  [
    "no memory",
    edit(nodes, "RealMemory=2063937 ", ""),
    'x:1: node "gpu001": RealMemory is missing',
  ],
  [
    "a memory that is none",
    edit(nodes, "RealMemory=2063937", "RealMemory=2T"),
    "RealMemory=2T is no count",
  ],
  [
    "a state that is none",
    edit(nodes, "State=IDLE", "State=SLEEPY"),
    'State has the unknown word "SLEEPY"',
  ],
  [
    "a flag that is none",
    edit(nodes, "IDLE+DRAIN", "IDLE+DRY"),
    'x:43: node "gpu003": State has the unknown word "DRY"',
  ],
  ["a Gres that is none", edit(nodes, "gpu:a100:8(S:0-1)", "gpu::8"), 'Gres item "gpu::8"'],
  [
    "GPUs of two types",
    edit(nodes, "nvme:1", "gpu:h100:1"),
    'GPUs of two types, "a100" and "h100"',
  ],
  [
    "a node twice",
    edit(nodes, "NodeName=gpu002", "NodeName=gpu001"),
    'x:18: node "gpu001" stands twice',
  ],
  ["a field twice", edit(nodes, "CPUTot=256", "CPUTot=256 CPUTot=1"), "x:2: CPUTot stands twice"],
])("scontrol: %s gets one error with line and reason", (_, text, message) => {
  expect(() => parseSlurmNodes(text, "x")).toThrow(message);
  expect(() => parseSlurmNodes(text, "x")).toThrow(/^x:\d+: [^\n]+$/);
});

test("Kubernetes nodes: product, count, rack, zone, readiness", () => {
  const list = parseKubernetesNodes(kubernetes);
  expect(list[0]).toEqual({
    name: "w1",
    accelerator: "NVIDIA-H100-80GB-HBM3",
    accelerators: 8,
    ready: true,
    rack: "r1",
    zone: "z1",
  });
  expect(list.map((n) => n.ready)).toEqual([true, true, true, false, false, true]);
  const { cluster, names } = clusterFromInventory(list, {
    hosts: { "NVIDIA-H100-80GB-HBM3": "dgx-h100", "NVIDIA-A100-SXM4-80GB": "dgx-a100-80" },
  });
  expect(names).toEqual(["w1", "w2", "w4", "w5", "w3"]);
  // w5 is in the second rack and zone that the list names.
  expect(domainsOf(cluster, 3 * 8)).toMatchObject({ rack: 1, pod: 1 });
});

test("one node, another rack label", () => {
  const [first] = JSON.parse(kubernetes).items;
  const list = parseKubernetesNodes(JSON.stringify(first), { rackLabel: "kubernetes.io/hostname" });
  expect(list).toMatchObject([{ name: "w1", rack: "w1" }]);
});

test.each([
  ["nothing", "", "x:1: expected a value, found the end of the file"],
  ["cut in a string", cut(kubernetes, "io/hostname"), "expected a string"],
  ["cut after a value", cut(kubernetes, /,\s*"status"/), "found the end of the file"],
  ["cut in a list", cut(kubernetes, /,\s*\{/), 'expected ",", found the end of the file'],
  [
    "a comma too many",
    edit(kubernetes, '"kind": "Node",', '"kind": "Node",,'),
    "expected a string",
  ],
  ["single quotes", edit(kubernetes, '"v1"', "'v1'"), `x:2: expected a value, found "'"`],
  ["a key twice", edit(kubernetes, '"apiVersion"', '"kind"'), 'the key "kind" stands twice'],
  ["another kind", edit(kubernetes, '"kind": "List"', '"kind": "PodList"'), 'kind is "PodList"'],
  ["a pod in the list", edit(kubernetes, '"kind": "Node"', '"kind": "Pod"'), "an item is a Pod"],
  ["no items", '{\n"kind": "List"\n}', 'x:1: List has no "items"'],
  ["no name", edit(kubernetes, '"name": "w1",', ""), 'metadata has no "name"'],
  [
    "a count that is a number",
    edit(kubernetes, '"nvidia.com/gpu": "8"', '"nvidia.com/gpu": 8'),
    "must be a string, not 8",
  ],
  [
    "a count that is none",
    edit(kubernetes, '"nvidia.com/gpu": "8"', '"nvidia.com/gpu": "8Gi"'),
    'is "8Gi", no whole number',
  ],
  ["a node twice", edit(kubernetes, '"name": "w2"', '"name": "w1"'), 'node "w1" stands twice'],
  ["more after the end", `${kubernetes}]`, 'expected the end of the file, found "]"'],
  ["bytes that are no JSON", edit(kubernetes, "eu-1", "\u0001"), "a control character in a string"],
])("Kubernetes: %s gets one error with line and reason", (_, text, message) => {
  const read = () => parseKubernetesNodes(text, { file: "x" });
  expect(read).toThrow(FormatError);
  expect(read).toThrow(message);
  expect(read).toThrow(/^x:\d+: [^\n]+$/);
});
