/** MSCCL XML to a program and back. */
import { TriremeError } from "@trireme/core";
import {
  type BufferName,
  type MscclBlock,
  type MscclGpu,
  type MscclProgram,
  type MscclStep,
  checkMsccl,
  mscclCollectives,
  oneOf,
  stepTypes,
} from "./program.ts";
import { type Element, parseXml } from "./xml.ts";

function text(element: Element, name: string, otherwise?: string): string {
  const value = element.attributes.get(name) ?? otherwise;
  if (value !== undefined) return value;
  throw new TriremeError("MSCCL", `line ${element.line}: <${element.name}> has no ${name}`);
}

function integer(element: Element, name: string, otherwise?: number): number {
  const value = text(element, name, otherwise?.toString());
  if (/^-?\d{1,15}$/.test(value)) return Number(value);
  throw new TriremeError("MSCCL", `line ${element.line}: ${name}="${value}" is not an integer`);
}

/** Children by their id, which must be 0, 1, 2, … in any order. */
function numbered(parent: Element, name: string, key: string): Element[] {
  const byId: Element[] = [];
  for (const child of parent.children) {
    if (child.name !== name) {
      throw new TriremeError(
        "MSCCL",
        `line ${child.line}: <${child.name}> inside <${parent.name}>, expected <${name}>`,
      );
    }
    const id = integer(child, key);
    if (id < 0 || id >= parent.children.length || byId[id] !== undefined) {
      throw new TriremeError(
        "MSCCL",
        `line ${child.line}: <${name} ${key}="${id}"> must be numbered 0..${parent.children.length - 1}, each once`,
      );
    }
    byId[id] = child;
  }
  return byId;
}

/** Parses and checks a program. Throws `MSCCL` with the line or the place. */
export function parseMsccl(xml: string): MscclProgram {
  const root = parseXml(xml);
  if (root.name !== "algo") {
    throw new TriremeError("MSCCL", `line ${root.line}: <${root.name}>, expected <algo>`);
  }
  const gpus = numbered(root, "gpu", "id").map(parseGpu);
  const declared = integer(root, "ngpus", gpus.length);
  if (declared !== gpus.length) {
    throw new TriremeError(
      "MSCCL",
      `line ${root.line}: ngpus="${declared}", but there are ${gpus.length} <gpu>`,
    );
  }
  const program: MscclProgram = {
    name: text(root, "name"),
    protocol: text(root, "proto", "Simple"),
    collective: oneOf(mscclCollectives, text(root, "coll"), root.line, "collective"),
    inPlace: integer(root, "inplace", 0) !== 0,
    chunksPerLoop: integer(root, "nchunksperloop", Math.max(0, ...gpus.map((g) => g.input))),
    channels: integer(root, "nchannels"),
    minBytes: integer(root, "minBytes", 0),
    maxBytes: integer(root, "maxBytes", 0),
    gpus,
  };
  checkMsccl(program);
  return program;
}

function parseGpu(element: Element): MscclGpu {
  return {
    input: integer(element, "i_chunks"),
    output: integer(element, "o_chunks"),
    scratch: integer(element, "s_chunks", 0),
    blocks: numbered(element, "tb", "id").map(parseBlock),
  };
}

function parseBlock(element: Element): MscclBlock {
  return {
    send: integer(element, "send", -1),
    receive: integer(element, "recv", -1),
    channel: integer(element, "chan", 0),
    steps: numbered(element, "step", "s").map(parseStep),
  };
}

function parseStep(element: Element): MscclStep {
  const buffer = (name: string): BufferName =>
    oneOf(["i", "o", "s"], text(element, name, "i"), element.line, "buffer");
  return {
    type: oneOf(stepTypes, text(element, "type"), element.line, "step type"),
    source: buffer("srcbuf"),
    sourceOffset: integer(element, "srcoff", -1),
    target: buffer("dstbuf"),
    targetOffset: integer(element, "dstoff", -1),
    count: integer(element, "cnt", 0),
    dependBlock: integer(element, "depid", -1),
    dependStep: integer(element, "deps", -1),
    hasDependent: integer(element, "hasdep", 0) !== 0,
  };
}

/** Prints a program as MSCCL XML. */
export function printMsccl(program: MscclProgram): string {
  const lines: string[] = [];
  const tag = (depth: number, name: string, attributes: object, empty: boolean): void => {
    const list = Object.entries(attributes).map(
      ([key, value]) => ` ${key}="${String(value).replaceAll(/["<&]/g, "")}"`,
    );
    lines.push(`${"  ".repeat(depth)}<${name}${list.join("")}${empty ? "/>" : ">"}`);
  };
  const { gpus } = program;
  tag(
    0,
    "algo",
    {
      name: program.name,
      proto: program.protocol,
      nchunksperloop: program.chunksPerLoop,
      nchannels: program.channels,
      ngpus: gpus.length,
      inplace: Number(program.inPlace),
      coll: program.collective,
      minBytes: program.minBytes,
      maxBytes: program.maxBytes,
    },
    false,
  );
  gpus.forEach(({ input, output, scratch, blocks }, id) => {
    tag(1, "gpu", { id, i_chunks: input, o_chunks: output, s_chunks: scratch }, false);
    blocks.forEach(({ send, receive, channel, steps }, b) => {
      tag(2, "tb", { id: b, send, recv: receive, chan: channel }, false);
      steps.forEach((step, s) => {
        const attributes = {
          s,
          type: step.type,
          srcbuf: step.source,
          srcoff: step.sourceOffset,
          dstbuf: step.target,
          dstoff: step.targetOffset,
          cnt: step.count,
          depid: step.dependBlock,
          deps: step.dependStep,
          hasdep: Number(step.hasDependent),
        };
        tag(3, "step", attributes, true);
      });
      lines.push("    </tb>");
    });
    lines.push("  </gpu>");
  });
  return `${[...lines, "</algo>"].join("\n")}\n`;
}
