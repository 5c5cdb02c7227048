/**
 * NCCL's topology XML, as `NCCL_TOPO_DUMP_FILE` writes it: processors, below them PCI devices with
 * GPUs and NICs, and below the GPUs their NVLinks or xGMI links. The package `saxes`
 * refuses XML that is not well-formed and knows its lines.
 */
import { missingPeer } from "@trireme/core";
import { FormatError } from "./format-error.ts";

const { SaxesParser } = await import("saxes").catch(
  missingPeer("@trireme/topology/formats", "saxes", "6.0.0"),
);

/** An element of the file, with the line of its start tag. */
export interface NcclElement {
  readonly name: string;
  readonly line: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly NcclElement[];
}

/** Which elements may stand in which. */
const children: Readonly<Record<string, readonly string[]>> = {
  system: ["cpu"],
  cpu: ["pci", "nic"],
  pci: ["pci", "gpu", "nic"],
  gpu: ["nvlink", "xgmi", "c2c"],
  nic: ["net"],
  nvlink: [],
  xgmi: [],
  c2c: [],
  net: [],
};

/** Attributes without which an element says nothing, and their form. */
const needed: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  cpu: { numaid: /^-?\d+$/ },
  pci: { busid: /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$/i },
  gpu: { dev: /^\d+$/ },
  nvlink: { target: /^[0-9a-f:.]+$/i, count: /^[1-9]\d*$/ },
  xgmi: { target: /^[0-9a-f:.]+$/i, count: /^[1-9]\d*$/ },
  c2c: { bw: /^[1-9]\d*$/, count: /^[1-9]\d*$/ },
  net: { name: /./, dev: /^\d+$/, speed: /^[1-9]\d*$/ },
};

/**
 * Parses the XML and checks its elements, their places and their attributes.
 * @throws FormatError with line and reason.
 */
export function parseNcclXml(xml: string, file = "NCCL topology XML"): NcclElement {
  const parser = new SaxesParser({ position: true, fileName: file, xmlns: false });
  const open: { element: NcclElement; children: NcclElement[] }[] = [];
  const lines: number[] = [];
  let root: NcclElement | undefined;
  const fail = (line: number, reason: string): never => {
    throw new FormatError(file, line, reason);
  };
  parser.on("error", (error) => {
    fail(parser.line, error.message.replace(/^.*?:\d+:\d+: /, ""));
  });
  parser.on("opentagstart", () => {
    lines.push(parser.line);
  });
  parser.on("text", (content) => {
    const text = content.trim();
    if (text === "") return;
    // The parser is past the text by now.
    const behind = content.trimStart().split("\n").length - 1;
    const [start] = text.split("\n", 1);
    fail(parser.line - behind, `text "${start}" between the elements`);
  });
  parser.on("opentag", ({ name, attributes }) => {
    const line = lines.pop() ?? parser.line;
    const parent = open.at(-1);
    const allowed = parent ? children[parent.element.name]! : ["system"];
    if (!allowed.includes(name)) {
      const where = parent ? `inside <${parent.element.name}>` : "as the root";
      const may = allowed.length > 0 ? `only <${allowed.join(">, <")}> may` : "nothing may";
      fail(line, `<${name}> stands ${where}, where ${may}`);
    }
    for (const [attribute, form] of Object.entries(needed[name] ?? {})) {
      const value = attributes[attribute];
      if (value === undefined) fail(line, `<${name}> has no ${attribute}`);
      else if (!form.test(value)) fail(line, `<${name}> has ${attribute}="${value}"`);
    }
    const inner: NcclElement[] = [];
    const element: NcclElement = { name, line, attributes: { ...attributes }, children: inner };
    if (parent) parent.children.push(element);
    else root = element;
    open.push({ element, children: inner });
  });
  parser.on("closetag", () => {
    open.pop();
  });
  parser.write(xml).close();
  return root ?? fail(1, "no <system> element");
}
