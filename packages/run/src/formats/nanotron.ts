/** nanotron's YAML (src/nanotron/config/config.py): what both ways have in common. */

/** Decay styles by those of a run; `1-sqrt` falls with the root of the steps. */
export const decayStyles: Readonly<Record<string, string>> = {
  linear: "linear",
  cosine: "cosine",
  sqrt: "1-sqrt",
};
/** Pipeline engines by schedule: all forward all backward is GPipe. */
export const engines: Readonly<Record<string, string>> = {
  "1f1b": "1f1b",
  gpipe: "afab",
};
/** Types of weights by precision. */
export const dtypes: Readonly<Record<string, string>> = {
  bf16: "bfloat16",
  fp16: "float16",
  fp32: "float32",
};

/** The name for a value, and back. */
export function nameOf(
  table: Readonly<Record<string, string>>,
  value: unknown,
): string | undefined {
  return Object.keys(table).find((name) => table[name] === value);
}
