/**
 * A pattern names the form of each layer of a hybrid model by the letters that Megatron-LM uses
 * (hybrid_layer_allocation.py): there a letter is a layer; parted by spaces, a layer here may also be a mixer and a
 * feed-forward block.
 */
import type { LayerForm } from "./layer-form.ts";
import { fail } from "./model-rules.ts";

const mixers: Readonly<Record<string, LayerForm["mixer"]>> = {
  M: "mamba",
  G: "delta-net",
  "*": "attention",
  W: "attention",
};
const blocks = "-E";

/** What a pattern says: the layers that repeat, and a prediction module where it names one. */
export interface Pattern {
  readonly layers: readonly LayerForm[];
  readonly prediction?: LayerForm;
}

/** Reads a pattern; throws TriremeError "MODEL" for letters that are none, and layers of two of a kind. */
export function readPattern(pattern: string): Pattern {
  const [main = "", module, ...more] = pattern.split("/");
  if (more.some((other) => other !== module)) {
    fail(`pattern "${pattern}" names prediction modules that differ; name one form`);
  }
  const layers = (/\s/.test(main.trim()) ? main.trim().split(/\s+/) : main.trim().split("")).map(
    (word) => readLayer(pattern, word),
  );
  if (layers.length === 0) fail(`pattern "${pattern}" names no layer; leave it out`);
  return module === undefined
    ? { layers }
    : { layers, prediction: readLayer(pattern, module.trim()) };
}

function readLayer(pattern: string, word: string): LayerForm {
  const [first = "", second] = word;
  const mixer = Object.hasOwn(mixers, first) ? mixers[first] : undefined;
  const block = mixer === undefined ? first : second;
  const known = block === undefined || (block !== "" && blocks.includes(block));
  if (!known || word.length !== (mixer === undefined ? 0 : 1) + (block === undefined ? 0 : 1)) {
    fail(
      `pattern "${pattern}": layer "${word}" must be one of M, G, *, W, one of -, E, or both in this order`,
    );
  }
  return {
    mixer: mixer ?? "none",
    windowed: first === "W",
    dense: block === "-",
    experts: block === "E",
  };
}
