/** YAML 1.2 as located values, by the package `yaml`. */
import { missingPeer } from "@trireme/core";
import type { ParsedNode } from "yaml";
import { FormatError } from "./format-error.ts";
import type { Located } from "./located.ts";

const { LineCounter, isMap, isScalar, isSeq, parseDocument } = await import("yaml").catch(
  missingPeer("@trireme/topology/formats", "yaml", "2.9.1"),
);

/**
 * Parses one YAML document of maps, lists and plain values.
 * @throws FormatError with line and reason, also on anchors, aliases and keys that are no strings.
 */
export function parseLocatedYaml(text: string, file: string): Located {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line);
  const [error] = [...document.errors, ...document.warnings];
  if (error) throw new FormatError(file, lineAt(error.pos[0]), error.message);

  const locate = (node: ParsedNode | null): Located => {
    if (node === null) return { kind: "scalar", line: 1, value: null };
    const line = lineAt(node.range[0]);
    if (isMap(node)) {
      const entries = new Map<string, Located>();
      for (const { key, value } of node.items) {
        if (!isScalar(key) || typeof key.value !== "string") {
          throw new FormatError(file, lineAt(key.range[0]), "a key is no string");
        }
        entries.set(key.value, value ? locate(value) : { kind: "scalar", line, value: null });
      }
      return { kind: "map", line, entries };
    }
    if (isSeq(node)) return { kind: "list", line, items: node.items.map((item) => locate(item)) };
    const value: unknown = isScalar(node) ? node.value : undefined;
    if (
      value === null ||
      typeof value === "string" ||
      typeof value === "number" ||
      typeof value === "boolean"
    ) {
      return { kind: "scalar", line, value };
    }
    throw new FormatError(file, line, "a value is neither map, list, string, number nor boolean");
  };
  const { contents } = document;
  if (contents === null) throw new FormatError(file, 1, "the file is empty");
  return locate(contents);
}
