/**
 * Which layers stand on which stage, in Megatron-LM's layout language
 * (`--pipeline-model-parallel-layout`): E embedding, t transformer layer, m multi-token-prediction
 * layer, L loss; `|` between stages, `x*n` repeats a letter, `(…)*n` a group that holds no group,
 * commas are ignored. `Ettt|(tt|)*29,m|L` has 32 stages. Stage k is chunk ⌊k/P⌋ of rank k mod P.
 */
import { TriremeError } from "@trireme/core";

/** Layers per stage. Stages without a letter are legal: they pass activations on. */
export interface StageLayout {
  /** Pipeline ranks, P. */
  readonly ranks: number;
  /** Stages per rank, V. */
  readonly chunks: number;
  /** The letters of each stage, `["Ett", "tt", "", "tL"]`. */
  readonly stages: readonly string[];
}

export interface LayoutOptions {
  readonly ranks: number;
  /** Transformer layers that the model has; not checked when left out. */
  readonly layers?: number;
  /** Multi-token-prediction layers that the model has; not checked when left out. */
  readonly mtpLayers?: number;
}

/**
 * Writes out the repetitions of a layout text: `xy(ab|cd|ef)*2,pq` → `xyab|cd|efab|cd|efpq`.
 * @throws TriremeError `LAYOUT` on unbalanced or nested groups, on a `*` without a count, and beyond
 * 1,000,000 repeated letters.
 */
export function expandLayout(text: string): string {
  const compact = text.replace(/[\s,]+/g, "");
  const group = /\(([^()]*)\)\*(\d+)/g;
  let written = 0;
  const repeat = (part: string, digits: string): string => {
    const n = countOf(text, digits);
    written += part.length * n;
    if (written > mostLetters) {
      throw new TriremeError(
        "LAYOUT",
        `layout "${text}" has more than ${mostLetters} letters; repeat less`,
      );
    }
    return part.repeat(n);
  };
  const letters = (s: string): string =>
    s.replace(/([A-Za-z])\*(\d+)/g, (_, letter: string, n: string) => repeat(letter, n));
  const out = letters(
    compact.replace(group, (_, inner: string, n: string) => repeat(letters(inner), n)),
  );
  const wrong = /[^A-Za-z|]/.exec(out);
  if (wrong !== null) {
    throw new TriremeError(
      "LAYOUT",
      `layout "${text}": "${wrong[0]}" does not belong to a repetition x*n or (…)*n without inner groups`,
    );
  }
  return out;
}

/** Repetitions beyond this are a mistake. */
const mostRepeats = 100_000;
/** Letters that repetitions may write, over all of them. */
const mostLetters = 1_000_000;

function countOf(text: string, digits: string): number {
  const n = Number(digits);
  if (n <= mostRepeats) return n;
  throw new TriremeError(
    "LAYOUT",
    `layout "${text}" repeats ${digits} times; at most ${mostRepeats} make sense`,
  );
}

/**
 * Reads a layout and checks Megatron's rules: one E, first; one L, last; no t after m; all m on one
 * stage of the last chunk; whole chunks.
 * @throws TriremeError `LAYOUT` with the numbers and the rule.
 */
export function parseLayout(text: string, o: LayoutOptions): StageLayout {
  if (!Number.isInteger(o.ranks) || o.ranks < 1) {
    throw new TriremeError(
      "LAYOUT",
      `layout for ${o.ranks} ranks; the number of ranks is an integer of 1 or more`,
    );
  }
  const stages = expandLayout(text).split("|");
  const fail = (rule: string): never => {
    throw new TriremeError("LAYOUT", `layout "${text}": ${rule}`);
  };
  const all = stages.join("");
  const count = (letter: string): number => all.split(letter).length - 1;
  const unknown = /[^EtmL]/.exec(all);
  if (unknown !== null) fail(`unknown letter ${unknown[0]}; the letters are E, t, m and L`);
  if (count("E") !== 1 || !stages[0]!.startsWith("E")) {
    fail(`${count("E")} E; exactly one stands first, on stage 0`);
  }
  if (count("L") !== 1 || !stages.at(-1)!.endsWith("L")) {
    fail(`${count("L")} L; exactly one stands last, on stage ${stages.length - 1}`);
  }
  if (o.layers !== undefined && count("t") !== o.layers) {
    fail(`${count("t")} t, but the model has ${o.layers} layers`);
  }
  if (o.mtpLayers !== undefined && count("m") !== o.mtpLayers) {
    fail(`${count("m")} m, but the model has ${o.mtpLayers} multi-token-prediction layers`);
  }
  const rest = stages.length % o.ranks;
  if (rest !== 0) {
    fail(
      `${stages.length} stages do not divide by ${o.ranks} ranks; ${stages.length - rest} or ${stages.length - rest + o.ranks} do`,
    );
  }
  const chunks = stages.length / o.ranks;
  if (/m.*t/.test(all)) fail("a t stands after an m; all t come first");
  const withM = stages.flatMap((s, k) => (s.includes("m") ? [k] : []));
  if (withM.length > 1) fail(`m on stages ${withM.join(" and ")}; all m stand on one stage`);
  if (withM.length === 1 && withM[0]! < (chunks - 1) * o.ranks) {
    fail(
      `m on stage ${withM[0]}; it stands in the last chunk, on stage ${(chunks - 1) * o.ranks} or later`,
    );
  }
  return { ranks: o.ranks, chunks, stages };
}

/** The layout as text, one letter for each layer; `parseLayout` reads it back. */
export function printLayout(l: StageLayout): string {
  return l.stages.join("|");
}

/** Numbers of the transformer layers on stage k, counted over the whole model from 0. */
export function layersOfStage(l: StageLayout, stage: number): number[] {
  const letters = l.stages[stage];
  if (letters === undefined) {
    throw new TriremeError("LAYOUT", `stage ${stage} is not in 0..${l.stages.length - 1}`);
  }
  const on = (s: string): number => s.split("t").length - 1;
  const first = l.stages.slice(0, stage).reduce((n, s) => n + on(s), 0);
  return Array.from({ length: on(letters) }, (_, i) => first + i);
}

/** The letters of each chunk of a pipeline rank. */
export function chunksOfRank(l: StageLayout, rank: number): string[] {
  if (!Number.isInteger(rank) || rank < 0 || rank >= l.ranks)
    throw new TriremeError("LAYOUT", `rank ${rank} is not in 0..${l.ranks - 1}`);
  return l.stages.filter((_, k) => k % l.ranks === rank);
}
