/** The stages of a plan, and which of them, and which pipeline ranks, cost the same. */
import {
  type Model,
  type Plan,
  type Stage,
  countForms,
  layerForms,
  recomputedLayers,
  stages,
  stagesOnRank,
} from "@trireme/workload";

/** Stages in model order; those of one kind hold as many layers and the same ends. */
export interface StageList {
  readonly stages: readonly Stage[];
  /** One stage of each kind. */
  readonly kinds: readonly Stage[];
  /** Kind of each stage. */
  readonly kindOf: Uint32Array;
  /** Stages on each pipeline rank; a stage is on two ranks where microbatches run both ways. */
  readonly onRank: readonly (readonly number[])[];
  /** One pipeline rank of each kind: those that hold stages of the same kinds in the same order. */
  readonly rankKinds: readonly number[];
  /** Kind of each pipeline rank. */
  readonly rankKindOf: Uint32Array;
}

/** Lists the stages of `p`. */
export function stageList(m: Model, p: Plan): StageList {
  const list = stages(m, p);
  const even = layerForms(m).length === 1;
  const kinds: Stage[] = [];
  const kindOf = Uint32Array.from(list, (s) => {
    const known = kinds.findIndex(
      (k) =>
        k.layers === s.layers &&
        k.embedding === s.embedding &&
        k.head === s.head &&
        k.vocabulary === s.vocabulary &&
        (even || sameLayers(m, p, k, s)),
    );
    return known >= 0 ? known : kinds.push(s) - 1;
  });
  const onRank = Array.from({ length: p.pp }, (_, rank) => stagesOnRank(p, rank));
  const rankKinds: number[] = [];
  const rankKindOf = Uint32Array.from({ length: p.pp }, (_, rank) => {
    const known = rankKinds.findIndex((other) => sameRank(kindOf, onRank[rank]!, onRank[other]!));
    return known >= 0 ? known : rankKinds.push(rank) - 1;
  });
  return { stages: list, kinds, kindOf, onRank, rankKinds, rankKindOf };
}

/** As many layers of each form, among the recomputed and in all. */
function sameLayers(m: Model, p: Plan, a: Stage, b: Stage): boolean {
  const again = recomputedLayers(p, a.layers);
  const counts = (s: Stage): readonly number[] => [
    ...countForms(m, s.firstLayer, again),
    ...countForms(m, s.firstLayer, s.layers),
  ];
  const [x, y] = [counts(a), counts(b)];
  return x.every((n, i) => n === y[i]);
}

function sameRank(kindOf: Uint32Array, a: readonly number[], b: readonly number[]): boolean {
  return a.every((stage, i) => kindOf[stage] === kindOf[b[i]!]);
}
