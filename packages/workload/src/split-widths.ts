/**
 * What tensor parallelism splits in a model's layers, and context parallelism in those that exchange heads for tokens.
 */
import { layerForms } from "./layer-form.ts";
import type { Model } from "./model.ts";

/** A width by name. */
export type Width = readonly [name: string, width: number];

/** Widths that tp must divide, of the layers that there are. */
export function tensorWidths(m: Model): readonly Width[] {
  const forms = layerForms(m);
  const { mamba, deltaNet } = m;
  return [
    ...(attends(m)
      ? ([
          ["heads", m.heads],
          ["kvHeads", m.kvHeads],
        ] as const)
      : []),
    ...(forms.some((f) => f.dense) ? [["ffn", m.ffn] as const] : []),
    ...(mamba === undefined
      ? []
      : ([
          ["mamba.heads", mamba.heads],
          ["mamba.groups", mamba.groups],
        ] as const)),
    ...(deltaNet === undefined
      ? []
      : ([
          ["deltaNet.keyHeads", deltaNet.keyHeads],
          ["deltaNet.valueHeads", deltaNet.valueHeads],
        ] as const)),
    ...m.encoders.flatMap(
      (e, i) =>
        [
          [`encoders[${i}].heads`, e.heads],
          [`encoders[${i}].ffn`, e.ffn],
        ] as const,
    ),
  ];
}

/**
 * Heads that context parallelism deals out: a scan needs all tokens of its heads, attention where heads are exchanged.
 */
export function exchangedHeads(m: Model, byHeads: boolean): readonly Width[] {
  return [
    ...(byHeads && attends(m) ? [["kvHeads", m.kvHeads] as const] : []),
    ...(m.mamba === undefined ? [] : [["mamba.heads", m.mamba.heads] as const]),
    ...(m.deltaNet === undefined ? [] : [["deltaNet.keyHeads", m.deltaNet.keyHeads] as const]),
  ];
}

function attends(m: Model): boolean {
  return layerForms(m).some((f) => f.mixer === "attention");
}
