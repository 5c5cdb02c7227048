import { expect, test } from "vitest";
import { defineLink, host, nicOf, numaOf, pairLink } from "@trireme/topology";
import { FormatError, hostFromNcclXml, parseNcclXml } from "@trireme/topology/formats";
import { cut, edit, vector } from "./vectors.ts";

const h100 = vector("nccl-h100.xml");
const mi250x = vector("nccl-mi250x.xml");

test("a DGX H100's dump is the catalogue's host", () => {
  const ours = hostFromNcclXml(h100, { name: "imported", accelerator: "h100" });
  const known = host("dgx-h100");
  expect(ours).toMatchObject({ accelerators: 8, network: { bandwidth: 50e9 } });
  for (let a = 0; a < 8; a++) {
    expect(nicOf(ours, a)).toBe(a);
    expect(numaOf(ours.interior!, a)).toBe(a < 4 ? 0 : 1);
    for (let b = 0; b < 8; b++) {
      if (a !== b) expect(pairLink(ours, a, b)).toEqual(pairLink(known, a, b));
    }
  }
});

test("a Frontier node's dump has the catalogue's pairs", () => {
  const ours = hostFromNcclXml(mi250x, { name: "imported", accelerator: "mi250x" });
  const known = host("frontier");
  expect(ours.network.bandwidth).toBe(known.network.bandwidth);
  for (let a = 0; a < 8; a++) {
    for (let b = 0; b < 8; b++) {
      if (a === b) continue;
      const { kind, bandwidth } = pairLink(known, a, b);
      expect(pairLink(ours, a, b)).toMatchObject({ kind, bandwidth });
    }
  }
});

test("GPUs count by dev, whatever their order in the file", () => {
  const swapped = h100.replaceAll('dev="0" sm', 'dev="9" sm');
  const ours = hostFromNcclXml(swapped, { name: "x", accelerator: "h100" });
  expect(ours.interior!.parts.slice(0, 8).map((p) => p.name)).toEqual([
    "gpu1",
    "gpu2",
    "gpu3",
    "gpu4",
    "gpu5",
    "gpu6",
    "gpu7",
    "gpu9",
  ]);
});

test("elements keep their lines", () => {
  const system = parseNcclXml(h100);
  expect([system.line, system.children[0]!.line, system.children[0]!.children[0]!.line]).toEqual([
    1, 2, 3,
  ]);
});

test("a comment before the system and an empty link speed are allowed", () => {
  const text = `<!-- dumped -->\n${mi250x.replaceAll('link_speed="16.0 GT/s PCIe"', 'link_speed=""')}`;
  expect(hostFromNcclXml(text, { name: "x", accelerator: "mi250x" }).accelerators).toBe(8);
});

test("without ports the network must be given", () => {
  const text = mi250x.replaceAll(/ *<nic>\n.*\n *<\/nic>\n/g, "");
  expect(() => hostFromNcclXml(text, { name: "x", accelerator: "mi250x", file: "x" })).toThrow(
    "x:1: the system has no <net>",
  );
  const network = defineLink("network", 1e9);
  expect(hostFromNcclXml(text, { name: "x", accelerator: "mi250x", network }).network).toBe(
    network,
  );
});

test.each([
  ["nothing", "", "x:1: document must contain a root element"],
  ["no XML", "GPU0 GPU1", "x:1: text data outside of root node."],
  ["cut in a tag", cut(h100, ' sm="90" rank="3"'), "x:50: unclosed tag: pci"],
  ["cut between tags", cut(h100, '    <pci busid="0000:30'), "x:33: unclosed tag: cpu"],
  ["tags that cross", edit(h100, "</gpu>", "</pci>"), "x:10: "],
  ["an attribute without quotes", edit(h100, 'dev="0"', "dev=0"), "x:5: "],
  ["another root", edit(edit(h100, "<system", "<graphs"), "</system", "</graphs"), "x:1: <graphs>"],
  [
    "an unknown element",
    edit(h100, '<gpu dev="0"', '<npu dev="0"'),
    "x:5: <npu> stands inside <pci>",
  ],
  [
    "a GPU under a processor",
    edit(mi250x, "<nic>", '<gpu dev="8"/><nic>'),
    "<gpu> stands inside <cpu>",
  ],
  ["no bus", edit(h100, 'busid="0000:1b:00.0"', ""), "x:4: <pci> has no busid"],
  ["a bus that is none", edit(h100, "0000:1b:00.0", "1b"), 'x:4: <pci> has busid="1b"'],
  ["no speed", edit(h100, ' speed="400000"', ""), "x:14: <net> has no speed"],
  ["a count of none", edit(h100, 'count="5"', 'count="0"'), 'x:6: <nvlink> has count="0"'],
  ["a link speed that is none", edit(h100, "32.0 GT/s", "fast"), 'x:3: <pci> has link_speed="fast'],
  [
    "a link to nothing",
    edit(mi250x, 'target="0000:c6:00.0"', 'target="0000:aa:00.0"'),
    "x:5: <xgmi> to 0000:aa:00.0, which is no GPU of the file",
  ],
  [
    "a link of one direction",
    edit(mi250x, 'target="0000:c6:00.0" count="4"', 'target="0000:c6:00.0" count="3"'),
    "3 links from gpu0 to gpu1, but 4 back",
  ],
  ["a GPU twice", edit(h100, '<gpu dev="1"', '<gpu dev="0"'), 'x:20: <gpu> "gpu0" stands twice'],
  ["text between elements", edit(h100, "<nic>", "<nic>lost"), 'x:13: text "lost"'],
  [
    "text of several lines",
    edit(h100, "<nic>", "<nic>lost\nand more\n"),
    'x:13: text "lost" between the elements',
  ],
  ["no GPUs", '<system version="1">\n<cpu numaid="0"/>\n</system>', "x:1: the system has no <gpu>"],
])("%s gets one error with line and reason", (_, text, message) => {
  const read = () =>
    hostFromNcclXml(text, {
      name: "x",
      accelerator: text.includes("xgmi") ? "mi250x" : "h100",
      file: "x",
    });
  expect(read).toThrow(FormatError);
  expect(read).toThrow(message);
  expect(read).toThrow(/^x:\d+: [^\n]+$/);
});
