import fc from "fast-check";
import { defineLink } from "@trireme/topology";
import {
  FormatError,
  astraFabric,
  hostFromNcclXml,
  hostFromTopo,
  parseAstraLogical,
  parseAstraNetwork,
  parseKubernetesNodes,
  parseNvidiaSmiTopo,
  parseSlurmNodes,
  parseSlurmTopology,
} from "@trireme/topology/formats";
import { expect, test } from "vitest";
import { vector } from "./vectors.ts";

const network = defineLink("network", 25e9);
const file = "x";

const importers: readonly (readonly [name: string, read: (text: string) => unknown])[] = [
  [
    "topo-a100.txt",
    (text) =>
      hostFromTopo(parseNvidiaSmiTopo(text, file), { name: "h", accelerator: "a100-80", network }),
  ],
  [
    "topo-v100.txt",
    (text) =>
      hostFromTopo(parseNvidiaSmiTopo(text, file), { name: "h", accelerator: "v100-32", network }),
  ],
  ["nccl-h100.xml", (text) => hostFromNcclXml(text, { name: "h", accelerator: "h100", file })],
  ["nccl-mi250x.xml", (text) => hostFromNcclXml(text, { name: "h", accelerator: "mi250x", file })],
  ["topology.conf", (text) => parseSlurmTopology(text, file)],
  ["topology-block.conf", (text) => parseSlurmTopology(text, file)],
  ["scontrol-nodes.txt", (text) => parseSlurmNodes(text, file)],
  ["nodes.json", (text) => parseKubernetesNodes(text, { file })],
  ["astra-network.yml", (text) => astraFabric(parseAstraNetwork(text, file))],
  ["astra-logical.json", (text) => parseAstraLogical(text, file)],
];

/** A part taken out, doubled or overwritten, wherever in the file. */
const wound = fc.record({
  kind: fc.constantFrom("end" as const, "lose" as const, "double" as const, "overwrite" as const),
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  length: fc.integer({ min: 1, max: 40 }),
  by: fc.string({ unit: "binary", minLength: 1, maxLength: 3 }),
});

test.each(importers)(
  "%s, cut or corrupted anywhere, is read or refused with line and reason",
  (name, read) => {
    const whole = vector(name);
    read(whole);
    fc.assert(
      fc.property(fc.array(wound, { minLength: 1, maxLength: 3 }), (wounds) => {
        let text = whole;
        for (const { kind, at, length, by } of wounds) {
          const from = Math.floor(at * text.length);
          const [head, tail] = [text.slice(0, from), text.slice(from)];
          if (kind === "end") text = head;
          else if (kind === "lose") text = head + tail.slice(length);
          else if (kind === "double") text = head + tail.slice(0, length) + tail;
          else text = head + by + tail.slice(by.length);
        }
        try {
          read(text);
        } catch (error) {
          if (!(error instanceof FormatError)) throw error;
          expect(error.message).toMatch(/^x:\d+: [^\n]+$/);
        }
      }),
      { numRuns: 150 },
    );
  },
);
