/**
 * Layers of one model differ in two ways: whether attention sees a window or everything, and whether
 * the feed-forward block is dense or a mixture of experts. Layers of one form cost the same.
 */
import type { Model } from "./model.ts";

/** What a layer is, of what its model has. */
export interface LayerForm {
  /** Attention stays within the model's window. */
  readonly windowed: boolean;
  /** The feed-forward block is a mixture of experts. */
  readonly experts: boolean;
}

interface Forms {
  readonly forms: readonly LayerForm[];
  /** First layer of each form. */
  readonly first: readonly number[];
}

const known = new WeakMap<Model, Forms>();

/** The different forms of a model's layers, in the order in which they first occur. */
export function layerForms(m: Model): readonly LayerForm[] {
  return formsOf(m).forms;
}

/** Index among `layerForms` of a layer's form; of the last layer's for what lies beyond it (prediction modules). */
export function layerFormAt(m: Model, layer: number): number {
  const form = formOf(m, Math.min(layer, m.layers - 1));
  return layerForms(m).findIndex((f) => same(f, form));
}

/** The first layer of a form. */
export function firstLayerOf(m: Model, form: number): number {
  return formsOf(m).first[form]!;
}

/** Layers of each form among the `layers` from `firstLayer` on; counted, not listed. */
export function countForms(m: Model, firstLayer: number, layers: number): readonly number[] {
  const { forms } = formsOf(m);
  if (forms.length === 1) return [layers];
  return forms.map((f) => below(m, f, firstLayer + layers) - below(m, f, firstLayer));
}

function formsOf(m: Model): Forms {
  let found = known.get(m);
  if (found === undefined) {
    found = listForms(m);
    known.set(m, found);
  }
  return found;
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
  return {
    windowed: !isMultiple(layer + 1, fullEvery(m)),
    experts: layer >= dense && isMultiple(layer + 1, expertsEvery(m)),
  };
}

function isMultiple(n: number, of: number): boolean {
  return of < Infinity && n % of === 0;
}

function same(a: LayerForm, b: LayerForm): boolean {
  return a.windowed === b.windowed && a.experts === b.experts;
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
