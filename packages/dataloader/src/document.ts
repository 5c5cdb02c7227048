/** Documents: the unit that is read, split and tokenised, before anything is cut into samples. */
import { TriremeError } from "@trireme/core";
import { keyedPermutation } from "./keyed-permutation.ts";

/** A text with a name to speak of it by, such as its path. */
export interface Document {
  readonly name: string;
  readonly text: string;
}

/** What is kept apart from training, and how it is chosen. */
export interface SplitOptions {
  /** Share of the documents to hold out, in [0, 1). */
  readonly validation: number;
  /** Chooses which; a safe integer. */
  readonly seed: number;
}

/**
 * Holds documents out for validation: whole ones, so that no text is on both sides. The count is
 * `validation` times the number of documents, rounded, but at least one on either side; 0 holds none
 * out. A lone document is cut in two instead, after the line break nearest to the share wanted (or
 * between code points where it has none), the end held out. Both sides keep the order given.
 */
export function splitDocuments(
  documents: readonly Document[],
  options: SplitOptions,
): { train: readonly Document[]; validation: readonly Document[] } {
  const { validation, seed } = options;
  if (!(validation >= 0 && validation < 1)) {
    throw new TriremeError(
      "SPLIT",
      `validation share ${validation} is outside [0, 1); use a fraction such as 0.1`,
    );
  }
  if (documents.length === 0)
    throw new TriremeError("SPLIT", "no documents to split; give at least one");
  if (validation === 0) return { train: documents, validation: [] };
  if (documents.length === 1) return cut(documents[0]!, validation);
  const wanted = Math.round(documents.length * validation);
  const count = Math.min(documents.length - 1, Math.max(1, wanted));
  const chosen = keyedPermutation(documents.length, seed);
  const held = new Set(Array.from({ length: count }, (_, i) => chosen(i)));
  return {
    train: documents.filter((_, i) => !held.has(i)),
    validation: documents.filter((_, i) => held.has(i)),
  };
}

function cut(
  document: Document,
  share: number,
): { train: readonly Document[]; validation: readonly Document[] } {
  const { name, text } = document;
  const target = Math.round(text.length * (1 - share));
  const before = text.lastIndexOf("\n", target - 1) + 1;
  const after = text.indexOf("\n", target) + 1;
  const candidates = [before, after].filter((at) => at > 0 && at < text.length);
  let at = candidates.sort((x, y) => Math.abs(x - target) - Math.abs(y - target))[0] ?? target;
  // Not between the halves of a surrogate pair.
  const code = text.charCodeAt(at);
  if (code >= 0xdc00 && code < 0xe000) at--;
  if (at <= 0 || at >= text.length) {
    throw new TriremeError(
      "SPLIT",
      `document "${name}" has ${text.length} characters: too few to hold ${share} of it out; use validation 0`,
    );
  }
  return {
    train: [{ name: `${name} (start)`, text: text.slice(0, at) }],
    validation: [{ name: `${name} (end)`, text: text.slice(at) }],
  };
}
