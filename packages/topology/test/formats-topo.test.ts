import { expect, test } from "vitest";
import { defineLink, host, nicOf, numaOf, pairLink } from "@trireme/topology";
import { hostFromTopo, parseNvidiaSmiTopo } from "@trireme/topology/formats";
import { cut, edit, vector } from "./vectors.ts";

const a100 = vector("topo-a100.txt");
const network = defineLink("network", 25e9);

test("a DGX A100's matrix: eight GPUs, eight NICs by name, affinities", () => {
  const matrix = parseNvidiaSmiTopo(a100);
  expect(matrix.gpus).toBe(8);
  expect(matrix.nicNames[7]).toBe("mlx5_7");
  expect(matrix.relations[0]![1]).toEqual({ kind: "NV", links: 12 });
  expect(matrix.relations[0]![8]).toEqual({ kind: "PXB" });
  expect(matrix.cpuAffinity[4]).toBe("64-127,192-255");
  expect(matrix.numaAffinity).toEqual(["0", "0", "0", "0", "1", "1", "1", "1"]);
});

test("its host is the catalogue's: NVSwitch, a PCIe switch for two GPUs and two NICs, two sockets", () => {
  const ours = hostFromTopo(parseNvidiaSmiTopo(a100), {
    name: "imported",
    accelerator: "a100-80",
    network,
  });
  const known = host("dgx-a100-80");
  for (let a = 0; a < 8; a++) {
    expect(nicOf(ours, a)).toBe(nicOf(known, a));
    expect(numaOf(ours.interior!, a)).toBe(numaOf(known.interior!, a));
    for (let b = 0; b < 8; b++) {
      if (a !== b) expect(pairLink(ours, a, b)).toEqual(pairLink(known, a, b));
    }
  }
});

test("an older print of a DGX-1: NICs by name, no NUMA column, NVLinks pair by pair", () => {
  const matrix = parseNvidiaSmiTopo(vector("topo-v100.txt"));
  expect(matrix.nicNames).toEqual(["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]);
  const ours = hostFromTopo(matrix, {
    name: "imported",
    accelerator: "v100-32",
    network,
    pcie: 15.75e9,
  });
  const known = host("dgx-v100-32");
  for (let a = 0; a < 8; a++) {
    expect(nicOf(ours, a)).toBe(nicOf(known, a));
    for (let b = 0; b < 8; b++) {
      if (a === b) continue;
      const { kind, bandwidth } = pairLink(known, a, b);
      expect(pairLink(ours, a, b)).toMatchObject({ kind, bandwidth });
    }
  }
});

test("a print with terminal escapes, spaces for tabs and no legend is read too", () => {
  const plain = cut(a100, "\nLegend").replaceAll("\t", "   ");
  expect(parseNvidiaSmiTopo(`\u001b[4m${plain.replace("\n", "\u001b[0m\n")}`)).toMatchObject({
    gpus: 8,
  });
});

test("a matrix of two cards without NVLink", () => {
  const text = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-11\nGPU1\tPHB\t X \t0-11\n";
  const h = hostFromTopo(parseNvidiaSmiTopo(text), {
    name: "two",
    accelerator: "rtx4090",
    network,
  });
  expect(h).toMatchObject({ accelerators: 2, link: { kind: "pcie", bandwidth: 31.5e9 } });
});

test.each([
  ["nothing", "", "x:1: no header: a line that starts with GPU0"],
  ["another tool's output", "Linux gpu001 5.15\n", "x:1: no header"],
  ["cut in the header", cut(a100, "GPU5"), "x:1: expected the row of GPU0"],
  ["cut after a row", cut(a100, "GPU4\tNV12"), 'x:6: expected the row of GPU4, found ""'],
  ["cut inside a row", cut(a100, "\tPXB\tNODE"), "x:2: row GPU0 has 9 entries; 16 relations and 3"],
  ["a row lost", edit(a100, /\nGPU2\t.*/, ""), 'x:4: expected the row of GPU2, found "GPU3"'],
  ["an unknown relation", edit(a100, "NV12", "NW12"), 'x:2: row GPU0: unknown relation "NW12"'],
  ["no NVLinks", edit(a100, "NV12", "NV0"), 'x:2: row GPU0: unknown relation "NV0"'],
  [
    "rows that contradict each other",
    edit(a100, "NV12", "NV4"),
    'x:3: row GPU1: "NV12" towards GPU0, whose row says "NV4"',
  ],
  [
    "a diagonal that is none",
    edit(a100, " X ", "SYS"),
    'x:2: row GPU0: "SYS" towards GPU0; X stands on the diagonal only',
  ],
  ["devices out of order", edit(a100, "GPU1\t", "GPU2\t"), 'x:1: device "GPU2" in column 2'],
  ["an unknown column", edit(a100, "CPU Affinity", "CPU Load"), 'x:1: unknown columns "CPU Load'],
  ["a bad affinity", edit(a100, "0-63,", "0-,"), 'x:2: row GPU0: CPU affinity "0-,128-191"'],
  ["a bad NUMA node", edit(a100, /\t0\t\tN\/A/, "\tzero\t\tN/A"), "NUMA affinity"],
  ["a NIC that is not there", edit(a100, "NIC7:", "NIC9:"), "names no NIC of the header"],
  ["text after the legend", `${a100}Killed\n`, '"Killed" is neither a row of the matrix nor'],
])("%s gets one error with line and reason", (_, text, message) => {
  expect(() => parseNvidiaSmiTopo(text, "x")).toThrow(message);
  expect(() => parseNvidiaSmiTopo(text, "x")).toThrow(/^x:\d+: [^\n]+$/);
});

test("NVLinks on an accelerator without them are refused", () => {
  expect(() =>
    hostFromTopo(parseNvidiaSmiTopo(a100), { name: "x", accelerator: "l40s", network }),
  ).toThrow("l40s (ada) has no NVLink, but the file shows some");
});
