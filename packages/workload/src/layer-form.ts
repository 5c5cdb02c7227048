/**
 * Layers of one model differ in whether attention sees a window or everything, in whether the feed-forward block is
 * dense or a mixture of experts, and where a pattern says so in what mixes tokens. Layers of one form cost the same.
 */
import type { Model } from "./model.ts";
import { readPattern } from "./pattern.ts";

/** What a layer is, of what its model has. */
export interface LayerForm {
  /**
   * What mixes tokens: attention, a state-space layer, a delta net; none in a layer that is a feed-forward block alone.
   */
  readonly mixer: "attention" | "mamba" | "delta-net" | "none";
  /** Attention stays within the model's window. */
  readonly windowed: boolean;
  /** There is a dense feed-forward block. */
  readonly dense: boolean;
  /** There is a mixture of experts. */
  readonly experts: boolean;
}

interface Forms {
  readonly forms: readonly LayerForm[];
  /** First layer of each form. */
  readonly first: readonly number[];
  /** Where a pattern names layers: for each form, how many are among the first of one repetition. */
  readonly prefixes?: readonly Uint32Array[];
}

const known = new WeakMap<Model, Forms>();

/**
 * The different forms of a model's layers, in the order in which they first occur; last that of its prediction modules,
 * where no layer has it.
 */
export function layerForms(m: Model): readonly LayerForm[] {
  return formsOf(m).forms;
}

/** Index among `layerForms` of a layer's form; beyond the last layer, of what prediction modules are. */
export function layerFormAt(m: Model, layer: number): number {
  const { forms, prefixes } = formsOf(m);
  if (prefixes !== undefined) {
    return prefixes.findIndex(
      (_, form) => patterned(m, form, layer + 1) > patterned(m, form, layer),
    );
  }
  const form = formOf(m, Math.min(layer, m.layers - 1));
  return forms.findIndex((f) => same(f, form));
}

/** The first layer of a form. */
export function firstLayerOf(m: Model, form: number): number {
  return formsOf(m).first[form]!;
}

/** Layers of each form among the `layers` from `firstLayer` on; counted, not listed. */
export function countForms(m: Model, firstLayer: number, layers: number): readonly number[] {
  const { forms, prefixes } = formsOf(m);
  if (prefixes !== undefined) {
    const until = firstLayer + layers;
    return forms.map((_, i) => patterned(m, i, until) - patterned(m, i, firstLayer));
  }
  if (forms.length === 1) return [layers];
  return forms.map((f) => below(m, f, firstLayer + layers) - below(m, f, firstLayer));
}

/** How many blocks on the residual stream a layer of a form is: each has a norm and is added. */
export function blocksOf(form: LayerForm): number {
  return (form.mixer === "none" ? 0 : 1) + (form.dense || form.experts ? 1 : 0);
}

function formsOf(m: Model): Forms {
  let found = known.get(m);
  if (found === undefined) {
    found = m.pattern === undefined ? listForms(m) : namedForms(m, m.pattern);
    known.set(m, found);
  }
  return found;
}

function namedForms(m: Model, pattern: string): Forms {
  const { layers, prediction } = readPattern(pattern);
  const forms: LayerForm[] = [];
  const first: number[] = [];
  const index = (form: LayerForm, layer: number): number => {
    const found = forms.findIndex((f) => same(f, form));
    if (found >= 0) return found;
    first.push(layer);
    return forms.push(form) - 1;
  };
  const each = layers.map((form, layer) => index(form, layer));
  const module = index(prediction ?? layers.at(-1)!, m.layers);
  const prefixes = forms.map((_, form) => {
    // One more at the end: whether what lies beyond the layers has it.
    const counts = new Uint32Array(layers.length + 2);
    for (const [i, f] of each.entries()) counts[i + 1] = counts[i]! + (f === form ? 1 : 0);
    counts[layers.length + 1] = form === module ? 1 : 0;
    return counts;
  });
  return { forms, first, prefixes };
}

/** Layers of a form among the first `n` where a pattern names them, prediction modules behind the last. */
function patterned(m: Model, form: number, n: number): number {
  const counts = formsOf(m).prefixes![form]!;
  const period = counts.length - 2;
  const inside = Math.min(n, m.layers);
  const whole = Math.floor(inside / period) * counts[period]! + counts[inside % period]!;
  return whole + (n - inside) * counts[period + 1]!;
}

/** Every so many layers one attends to all: each of them without a window, none where all have it. */
function fullEvery({ window }: Model): number {
  return window === undefined ? 1 : window.every === 0 ? Infinity : window.every;
}

/** Every so many layers one has experts, behind the dense ones. */
function expertsEvery({ experts }: Model): number {
  return experts?.every ?? Infinity;
}

function formOf(m: Model, layer: number): LayerForm {
  const dense = m.experts?.denseLayers ?? 0;
  const experts = layer >= dense && isMultiple(layer + 1, expertsEvery(m));
  return {
    mixer: "attention",
    windowed: !isMultiple(layer + 1, fullEvery(m)),
    dense: !experts,
    experts,
  };
}

function isMultiple(n: number, of: number): boolean {
  return of < Infinity && n % of === 0;
}

function same(a: LayerForm, b: LayerForm): boolean {
  return (
    a.windowed === b.windowed &&
    a.experts === b.experts &&
    a.mixer === b.mixer &&
    a.dense === b.dense
  );
}

/** Layers of a form among the first `n`. */
function below(m: Model, form: LayerForm, n: number): number {
  const dense = m.experts?.denseLayers ?? 0;
  const [full, mixed] = [fullEvery(m), expertsEvery(m)];
  const experts = beyond(n, dense, mixed);
  const fullExperts = beyond(n, dense, leastCommonMultiple(full, mixed));
  const fulls = Math.floor(n / full);
  if (form.experts) return form.windowed ? experts - fullExperts : fullExperts;
  return form.windowed ? n - fulls - (experts - fullExperts) : fulls - fullExperts;
}

/** Multiples of `of` in (start, n]. */
function beyond(n: number, start: number, of: number): number {
  return Math.max(0, Math.floor(n / of) - Math.floor(start / of));
}

function leastCommonMultiple(a: number, b: number): number {
  if (a === Infinity || b === Infinity) return Infinity;
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** Where forms can first occur: at the start, at a full layer, at the first layers with experts of either kind. */
function listForms(m: Model): Forms {
  const dense = m.experts?.denseLayers ?? 0;
  const [full, mixed] = [fullEvery(m), expertsEvery(m)];
  const next = (of: number): number => (Math.floor(dense / of) + 1) * of - 1;
  const both = leastCommonMultiple(full, mixed);
  const candidates = [0, 1, full - 1, next(mixed), next(mixed) + mixed, next(both)]
    .filter((layer) => layer < m.layers)
    .toSorted((a, b) => a - b);
  const forms: LayerForm[] = [];
  const first: number[] = [];
  for (const layer of candidates) {
    const form = formOf(m, layer);
    if (forms.some((f) => same(f, form))) continue;
    forms.push(form);
    first.push(layer);
  }
  return { forms, first };
}
