/** What a model may be that the embedded engine does not compute: the wish, whether it is there, and the way out. */
import type { Model, Plan } from "@trireme/workload";

/** A wish, whether a run has it, and what to use instead. */
export type Wish = readonly [what: string, asked: boolean, instead: string];

/** The forms of models that the engine does not carry out. */
export function modelWishes(m: Model): readonly Wish[] {
  return [
    [
      `pattern ${m.pattern}`,
      m.pattern !== undefined,
      "a model of attention and feed-forward blocks",
    ],
    ["a gate on attention", m.attentionGate, "attentionGate false"],
    [`position ${m.position}`, m.position === "alibi", "learned or rotary"],
    [`extraPositions ${m.extraPositions}`, m.extraPositions !== 0, "extraPositions 0"],
    [
      `rotaryFraction ${m.rotaryFraction} of heads of ${m.headDim}`,
      m.position === "rotary" && m.latent === undefined && (m.headDim * m.rotaryFraction) % 2 !== 0,
      "a fraction that is an even number",
    ],
    ["norms without weights", !m.normWeights, "normWeights true"],
    ["LayerNorm without a shift", m.norm === "layernorm" && !m.normBias, "normBias true"],
    ["RMSNorm with a shift", m.norm === "rmsnorm" && m.normBias, "normBias false"],
    [`normPlacement ${m.normPlacement}`, m.normPlacement !== "pre", "normPlacement pre"],
    ["a model without a final norm", !m.finalNorm, "finalNorm true"],
    ["a norm after the embedding", m.embeddingNorm, "embeddingNorm false"],
    [
      `qkNorm ${m.qkNorm} in a model of ${m.norm}`,
      m.qkNorm === "all" || (m.qkNorm === "head" && m.norm !== "rmsnorm"),
      "qkNorm head with rmsnorm, or none",
    ],
    [`activationClamp ${m.activationClamp}`, m.activationClamp !== 0, "activationClamp 0"],
    ["attention sinks", m.attentionSinks, "attentionSinks false"],
    ["attention that is not causal", !m.causal, "causal true"],
    ["segments", m.segments !== 0, "segments 0"],
    ["a pooler", m.pooler, "pooler false"],
    [
      `latent attention with values of ${m.latent?.valueDim}, wider than keys of ${m.headDim}`,
      (m.latent?.valueDim ?? 0) > m.headDim,
      `valueDim ${m.headDim} or less`,
    ],
    [
      `latent attention with ropeDim ${m.latent?.ropeDim}, whose numbers turn in pairs`,
      (m.latent?.ropeDim ?? 0) % 2 !== 0,
      "an even ropeDim",
    ],
    ["latent attention with biases", m.latent !== undefined && (m.bias || m.qkvBias), "bias false"],
    ["multi-token prediction", m.prediction !== 0, "prediction 0"],
    ["encoders", m.encoders.length > 0, "a model without encoders"],
    ...adapterWishes(m),
  ];
}

function adapterWishes({ adapter, latent }: Model): readonly Wish[] {
  const inner = latent === undefined ? undefined : adapter?.targets.find((t) => t !== "output");
  return [
    ["adapter.base fp8", adapter?.base === "fp8", "adapter.base int8"],
    [
      `adapter.dropout ${adapter?.dropout}`,
      (adapter?.dropout ?? 0) > 0,
      "adapter.dropout 0, the default",
    ],
    [`an adapter of ${inner} in latent attention`, inner !== undefined, "adapter.targets output"],
  ];
}

/** The parts of a plan that only such models have, and others that the engine does not carry out. */
export function expertWishes(p: Plan): readonly Wish[] {
  return [
    ["overlapExpertParallel", p.overlapExpertParallel, "overlapExpertParallel false"],
    // A product is made for each expert by itself, which is what false says.
    ["groupedKernel", p.groupedKernel, "groupedKernel false"],
    [`cudaGraphs ${p.cudaGraphs}`, p.cudaGraphs !== "none", "cudaGraphs none"],
  ];
}
