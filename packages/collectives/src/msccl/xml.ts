/** The part of XML that MSCCL writes: elements with attributes, comments and a declaration; no text. */
import { TriremeError } from "@trireme/core";

export interface Element {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: Element[];
  readonly line: number;
}

const token =
  /<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<(\/?)([A-Za-z][\w.-]*)((?:\s+[\w.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>/y;
const attribute = /([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

function fail(line: number, what: string): never {
  throw new TriremeError("MSCCL", `line ${line}: ${what}`);
}

/** Parses one root element. Throws `MSCCL` with the line. */
export function parseXml(text: string): Element {
  let at = 0;
  let line = 1;
  let root: Element | undefined;
  const open: Element[] = [];
  while (at < text.length) {
    const space = /\s*/y;
    space.lastIndex = at;
    const blank = space.exec(text)![0];
    line += blank.split("\n").length - 1;
    at += blank.length;
    if (at === text.length) break;
    token.lastIndex = at;
    const found = token.exec(text);
    if (found === null) fail(line, `not XML: ${JSON.stringify(text.slice(at, at + 40))}`);
    const [whole, closing, name, attributes, empty] = found;
    at += whole.length;
    if (name !== undefined && closing === "/") {
      const element = open.pop();
      if (element?.name !== name) {
        fail(
          line,
          `</${name}> closes ${element === undefined ? "nothing" : `<${element.name}> of line ${element.line}`}`,
        );
      }
    } else if (name !== undefined) {
      const map = new Map<string, string>();
      for (const [, key, double, single] of attributes!.matchAll(attribute)) {
        if (map.has(key!)) fail(line, `<${name}> has ${key} twice`);
        map.set(key!, double ?? single ?? "");
      }
      const element: Element = { name, attributes: map, children: [], line };
      if (open.length > 0) open.at(-1)!.children.push(element);
      else if (root === undefined) root = element;
      else fail(line, `<${name}> after the end of <${root.name}>`);
      if (empty !== "/") open.push(element);
    }
    line += whole.split("\n").length - 1;
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined)
    fail(line, `<${unclosed.name}> of line ${unclosed.line} is not closed`);
  if (root === undefined) fail(line, "no element");
  return root;
}
