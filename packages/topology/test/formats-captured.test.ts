// Forms that captured files have and that the tools' documents do not show. The texts are written
// for these tests; where each form was seen is in vectors/README.md.
import { expect, test } from "vitest";
import { defineLink, nicOf, nicsOf, numaOf, pairLink } from "@trireme/topology";
import {
  FormatError,
  hostFromNcclXml,
  hostFromTopo,
  parseAstraNetwork,
  parseNvidiaSmiTopo,
  parseSlurmNodes,
  parseSlurmTopology,
} from "@trireme/topology/formats";
import { edit, vector } from "./vectors.ts";

const a100 = vector("topo-a100.txt");
const network = defineLink("network", 50e9);

test("a matrix printed in a container: CPU affinities that are empty between tabs", () => {
  const some = a100.replaceAll("\t0-63,128-191\t", "\t\t");
  expect(some).not.toBe(a100);
  const matrix = parseNvidiaSmiTopo(some);
  expect(matrix.cpuAffinity.slice(3, 5)).toEqual([undefined, "64-127,192-255"]);
  expect(matrix.numaAffinity.slice(3, 5)).toEqual(["0", "1"]);
  const none = a100.replaceAll(/\t[0-9]+-[0-9,-]+\t[01]\t\tN\/A/g, "\t\t\t\tN/A");
  expect(parseNvidiaSmiTopo(none).numaAffinity).toEqual(Array.from({ length: 8 }, () => undefined));
});

test("without tabs a missing affinity cannot be told, and is refused with its line", () => {
  const text = edit(a100, "\t0-63,128-191\t", "\t\t").replaceAll("\t", "  ");
  expect(() => parseNvidiaSmiTopo(text, "x")).toThrow("x:2: row GPU0 has 18 entries; 16 relations");
});

test("an old driver's SOC is today's SYS, and a missing NUMA column leaves the cores", () => {
  const text =
    "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tSOC\tPHB\t0-7\nGPU1\tSOC\t X \tSOC\t8-15\n" +
    "mlx5_0\tPHB\tSOC\t X \t\n\nLegend:\n\n  SOC  = Path traverses a socket-level link\n";
  const matrix = parseNvidiaSmiTopo(text);
  expect(matrix.relations[0]![1]).toEqual({ kind: "SYS" });
  const h = hostFromTopo(matrix, { name: "two", accelerator: "rtx3090", network });
  expect([numaOf(h.interior!, 0), numaOf(h.interior!, 1)]).toEqual([0, 1]);
});

const skeleton = vector("nccl-skeleton.xml");

test("a cloud's skeleton has buses alone: classes tell GPUs from NICs, and buses number them", () => {
  const h = hostFromNcclXml(skeleton, { name: "vm", accelerator: "h100", network });
  expect(h.accelerators).toBe(4);
  expect(nicsOf(h)).toBe(4);
  // The file lists the GPU at 0008 last, and its switch holds the NIC at 0104.
  const named = (kind: string) =>
    h.interior!.parts.flatMap((part) => (part.kind === kind ? [part.name] : []));
  expect(named("accelerator")).toEqual([1, 2, 3, 8].map((n) => `000${n}:00:00.0`));
  expect([0, 1, 2, 3].map((d) => named("nic")[nicOf(h, d)])).toEqual(
    [1, 2, 3, 4].map((n) => `010${n}:00:00.0`),
  );
  expect([0, 1, 2, 3].map((d) => numaOf(h.interior!, d))).toEqual([0, 0, 1, 1]);
  expect(h.link).toMatchObject({ kind: "pcie" });
});

test("what a skeleton leaves out is given: the network, and the scale-up switch", () => {
  expect(() => hostFromNcclXml(skeleton, { name: "vm", accelerator: "h100", file: "x" })).toThrow(
    "x:1: the system has no <net> with a speed; give the network's link as an option",
  );
  const scaleUp = defineLink("nvlink", 450e9);
  const h = hostFromNcclXml(skeleton, { name: "vm", accelerator: "h100", network, scaleUp });
  expect(pairLink(h, 0, 3)).toEqual(scaleUp);
});

/** A virtual machine: one switch behind a bus that is none, NUMA unknown, sockets as the network. */
const virtual = (accelerator: string, links: string) => `<system version="1">
  <cpu host_hash="0x1" numaid="-1" arch="x86_64">
    <pci busid="0000:05:00.0" class="0x030200" link_speed="" link_width="0">
      <gpu dev="0" sm="90" rank="0" gdr="1">${links}</gpu>
    </pci>
    <pci busid="0000:06:00.0" class="0x030200" link_speed="" link_width="0">
      <gpu dev="1" sm="90" rank="1" gdr="1">${links}</gpu>
    </pci>
    <nic><net name="eth0" dev="0" speed="10000" port="0" guid="0x0" gdr="0"/></nic>
  </cpu>
  <cpu host_hash="0x1" numaid="1" arch="${accelerator}">
    <nic><net name="eth0" dev="0" speed="10000" port="0" guid="0x0" gdr="0"/></nic>
  </cpu>
</system>
`;

test("NVSwitches that a virtual machine does not see are one switch; eth0 is one port", () => {
  const text = virtual("h100", '<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>');
  const h = hostFromNcclXml(text, { name: "vm", accelerator: "h100" });
  expect(pairLink(h, 0, 1)).toMatchObject({ kind: "nvlink", bandwidth: 450e9 });
  expect(nicsOf(h)).toBe(1);
  expect(h.network.bandwidth).toBe(1.25e9 / 2);
});

test("a link from a GPU to itself joins nothing", () => {
  const one = virtual("a100", '<nvlink target="0000:05:00.0" count="12" tclass="0x030200"/>');
  // The second GPU's link is to the first, which has none back.
  expect(() =>
    hostFromNcclXml(one, { name: "vm", accelerator: "a100-pcie-80", file: "x" }),
  ).toThrow("x:7: 12 links from gpu1 to gpu0, but 0 back");
  const both = one.replace(/(dev="1".*target=")0000:05/, "$10000:06");
  const h = hostFromNcclXml(both, { name: "vm", accelerator: "a100-pcie-80" });
  expect(h.link.kind).toBe("pcie");
});

test("a dump of a scale-up domain has several hosts, and is refused", () => {
  const text = edit(virtual("x", ""), 'host_hash="0x1" numaid="1"', 'host_hash="0x2" numaid="1"');
  expect(() => hostFromNcclXml(text, { name: "x", accelerator: "gb200", file: "x" })).toThrow(
    "x:11: <cpu> of host 0x2 beside one of host 0x1; give the file of one host",
  );
});

test("Infinity Fabric has the rate of its generation: 50 GB/s a link on CDNA 2, 64 on CDNA 3", () => {
  const mi250x = vector("nccl-mi250x.xml");
  const rate = (accelerator: string) =>
    pairLink(hostFromNcclXml(mi250x, { name: "x", accelerator }), 0, 1).bandwidth;
  expect([rate("mi250x"), rate("mi300x")]).toEqual([200e9, 256e9]);
  expect(() => rate("h100")).toThrow("h100 (hopper) has no Infinity Fabric");
});

test("switches named by a range with dots, comments between, and a forest without a top", () => {
  const tree = parseSlurmTopology(
    "# s.2.1=spine-1\nSwitchName=s.2.1 Switches=s.1.[1-2]\n# s.1.1=leaf-1\nSwitchName=s.1.1 Nodes=srv[1101-1108]\n" +
      "SwitchName=s.1.2 Nodes=srv[1201-1208]\nSwitchName=lone Nodes=storage1,login[1-2]\n",
  );
  expect(tree.nodes).toHaveLength(19);
});

test("a host in two leaf switches is refused at the second, also inside another range", () => {
  const text = "SwitchName=s2 Nodes=n[041-058]\nSwitchName=s4 Nodes=n[037-039,051,061]\n";
  expect(() => parseSlurmTopology(text, "x")).toThrow('x:2: node "n051" is under "s2" and "s4"');
});

test("nodes of three releases of Slurm: no GPU type, free text with equals signs, one line each", () => {
  const nodes = parseSlurmNodes(
    `NodeName=vm013 Arch=x86_64 CoresPerSocket=6 
   CPUAlloc=1 CPUEfctv=10 CPUTot=12 CPULoad=0.92
   Gres=gpu:1(S:0-1)
   OS=Linux 6.8.0-59-generic #61~22.04.1-Ubuntu SMP Tue Apr 15 17:03:15 UTC 2 
   RealMemory=117000 AllocMem=0 State=MIXED+PLANNED ThreadsPerCore=1
   AllocTRES=

NodeName=gpu01 CPUErr=0 CPUTot=16 Gres=gpu:4 Version=17.02 OS=Linux RealMemory=512000 State=MIXED Partitions=gpu  AllocTRES=cpu=3,mem=28500M
NodeName=worker-0 InstanceId=i-1 CPUTot=128 Gres=gpu:nvidia_h100:8 State=IDLE+DRAIN RealMemory=191356 Reason=[user_problem] alloc=busy [root@2026-01-01T00:00:00]
`,
  );
  expect(nodes.map((n) => [n.name, n.accelerator, n.accelerators, n.ready])).toEqual([
    ["vm013", undefined, 1, true],
    ["gpu01", undefined, 4, true],
    ["worker-0", "nvidia_h100", 8, false],
  ]);
});

test("an ASTRA-sim network that waits for its figures is refused where they are due", () => {
  const text =
    "# per link\ntopology: [ Ring, Ring ]  # Ring, Switch\nnpus_count: [ 2, 2 ]\nbandwidth: [ tbd, tbd ]  # \nlatency: [ 1, 1 ]\n";
  const read = () => parseAstraNetwork(text, "x.yml");
  expect(read).toThrow(FormatError);
  expect(read).toThrow('x.yml:4: bandwidth must be a number, not "tbd"');
});
