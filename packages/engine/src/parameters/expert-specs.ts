/** The tensors of a mixture of experts. */
import type { Model } from "@trireme/workload";
import type { ParameterSpec } from "./parameter.ts";
import type { Range } from "../memory/slice.ts";
import { type Share, constant, feedForward, matrix, split } from "./spec-parts.ts";

/** How experts are shared out, and what every token goes through. */
export interface ExpertShares {
  /** Each layer over tensor-parallel ranks. */
  readonly tensor: Share;
  /** Routed experts over expert-parallel ranks. */
  readonly expert: Share;
  /** Each routed expert over expert-tensor-parallel ranks. */
  readonly expertSplit: Share;
}

/** An expert: of the bias of its second product each rank that shares it out adds some columns. */
function expertBlock(model: Model, name: string, ffn: number, share: Share): ParameterSpec[] {
  const columns = split(share, 0, [biasColumns(model.hidden, share)]);
  return feedForward(model, name, ffn, share).map((spec) =>
    spec.name === `${name}.c_proj.bias` ? { ...spec, slice: columns } : spec,
  );
}

/** The columns of an expert's result to which a rank adds the bias. */
export function biasColumns(hidden: number, { rank, ranks }: Share): Range {
  const start = Math.floor((rank * hidden) / ranks);
  return { start, count: Math.floor(((rank + 1) * hidden) / ranks) - start };
}

/** Router, this rank's experts, and the expert that sees every token. */
export function expertSpecs(model: Model, prefix: string, shares: ExpertShares): ParameterSpec[] {
  const { tensor, expert, expertSplit } = shares;
  const { count, ffn, sharedFfn, sharedGate, routerBias, selectionBias } = model.experts!;
  const local = count / expert.ranks;
  const own = Array.from(
    { length: local },
    (_, i) => `${prefix}.mlp.experts.${expert.rank * local + i}`,
  );
  const state = (name: string): ParameterSpec => ({
    ...constant(`${prefix}.mlp.router.${name}`, count, 0),
    role: "state",
  });
  return [
    matrix(`${prefix}.mlp.router.weight`, [model.hidden, count]),
    ...(routerBias ? [constant(`${prefix}.mlp.router.bias`, count, 0)] : []),
    state("load"),
    ...(selectionBias ? [state("selection_bias")] : []),
    ...own.flatMap((name) =>
      expertBlock(model, name, ffn, expertSplit).map((spec) => ({
        ...spec,
        role: "expert" as const,
      })),
    ),
    ...(sharedFfn > 0 ? feedForward(model, `${prefix}.mlp.shared`, sharedFfn, tensor) : []),
    ...(sharedGate ? [matrix(`${prefix}.mlp.shared_gate.weight`, [model.hidden, 1])] : []),
  ];
}
