/**
 * Run files in YAML 1.2: parsing, and where in the file the values are, so that problems can say it.
 */
import { missingPeer } from "@trireme/core";
import type { Document } from "yaml";
import { type Path, type Problem, RunError } from "./problem.ts";

const { LineCounter, isCollection, isMap, isPair, isScalar, parseDocument } =
  await import("yaml").catch(missingPeer("@trireme/run/yaml", "yaml", "2.9.1"));

/** A place in a file; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A parsed run file. */
export interface RunFile {
  /** The name it is printed under. */
  readonly file: string;
  /** Plain data, for `defineRun`. */
  readonly description: unknown;
  /** Where the value at a path stands, or its key, or the nearest parent that the file has. */
  position(path: Path, of?: "key" | "value"): Position;
  /** The problem with its place in the file, for `formatProblem`. */
  locate(problem: Problem): Problem;
}

/**
 * Parses the text of a run file.
 * @param options.file Name for messages.
 * @throws RunError for text that is no YAML, with every syntax error and its position, and for none.
 */
export function parseRunYaml(text: string, options: { readonly file: string }): RunFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (document.errors.length > 0) {
    throw new RunError(
      document.errors.map(({ pos, code, message }) =>
        syntaxProblem(
          options.file,
          positionOf(pos[0]),
          code === "MULTIPLE_DOCS" ? "a run file is one document; remove what follows" : message,
        ),
      ),
    );
  }
  const description = toData(document, options.file);
  if (description === null || description === undefined) {
    const rule = "the file is empty; a run needs model and plan at least";
    throw new RunError([syntaxProblem(options.file, { line: 1, column: 1 }, rule)]);
  }
  const position = (path: Path, of: "key" | "value" = "value"): Position =>
    positionOf(offsetOf(document, path, of));
  return {
    file: options.file,
    description,
    position,
    locate(problem) {
      const of = problem.value === undefined ? "key" : "value";
      return { ...problem, at: place(options.file, position(problem.path, of)) };
    },
  };
}

function place(file: string, { line, column }: Position): string {
  return `${file}:${line}:${column}`;
}

function syntaxProblem(file: string, at: Position, message: string): Problem {
  return { at: place(file, at), path: [], value: undefined, rule: message.split("\n", 1)[0]! };
}

function toData(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 }) as unknown;
  } catch (error) {
    // Unresolved aliases and alias bombs are found only here.
    const message = error instanceof Error ? error.message : String(error);
    throw new RunError([syntaxProblem(file, { line: 1, column: 1 }, message)], { cause: error });
  }
}

/** Offset of what stands at a path: of its key where that is meant, or where the value is a group. */
function offsetOf(document: Document, path: Path, of: "key" | "value"): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find(
        (item) => isScalar(item.key) && String(item.key.value) === String(key),
      );
      if (!isPair(pair)) break;
      node = pair.value;
      const value = of === "value" && isScalar(node) ? startOf(node) : undefined;
      offset = value ?? startOf(pair.key) ?? offset;
    } else if (isCollection(node)) {
      node = node.items[Number(key)];
      offset = startOf(node) ?? offset;
    } else break;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  const range: unknown =
    typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === "number" ? range[0] : undefined;
}
