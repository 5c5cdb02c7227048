/** Which lines of a text workload are whose: SimAI lists all microbatches of a step in a row. */
import { TriremeError } from "@trireme/core";
import type { TextLayer, TextWorkload } from "./text-workload.ts";

/** The lines of a step. */
export interface TextStep {
  /** Lines before the microbatches and after them, done once. */
  readonly before: readonly TextLayer[];
  readonly after: readonly TextLayer[];
  /** Lines of each microbatch. */
  readonly microbatches: readonly (readonly TextLayer[])[];
}

/**
 * Finds the microbatches: as many blocks in a row with the same names as the header says, as long as can
 * be; what stands around them is done once.
 * @throws TriremeError "WORKLOAD" when there are not that many.
 */
export function textMicrobatches({ layers, microbatches: count }: TextWorkload): TextStep {
  const most = Math.floor(layers.length / count);
  const names = numbered(layers);
  for (let size = most; size > 0; size--) {
    const first = repeatedAt(names, size, (count - 1) * size);
    if (first < 0) continue;
    const end = first + count * size;
    return {
      before: layers.slice(0, first),
      after: layers.slice(end),
      microbatches: Array.from({ length: count }, (_, m) =>
        layers.slice(first + m * size, first + (m + 1) * size),
      ),
    };
  }
  throw new TriremeError(
    "WORKLOAD",
    `ga is ${count}, but ${layers.length} layers do not hold ${count} times the same in a row; list every microbatch`,
  );
}

function numbered(layers: readonly TextLayer[]): Int32Array {
  const known = new Map<string, number>();
  return Int32Array.from(layers, ({ name }) => {
    if (!known.has(name)) known.set(name, known.size);
    return known.get(name)!;
  });
}

/**
 * Where the first stretch begins in which `run` lines, but not `size` more, have the name of the line
 * `size` after them; −1: none. With more there would be more blocks than were asked for.
 */
function repeatedAt(names: Int32Array, size: number, run: number): number {
  let length = 0;
  for (let i = 0; i + size <= names.length; i++) {
    if (i + size < names.length && names[i] === names[i + size]) length++;
    else if (length >= run && length < run + size) return i - length;
    else length = 0;
  }
  return -1;
}
