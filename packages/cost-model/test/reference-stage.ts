/**
 * One microbatch through one stage, straight from the stage's own operators: no blocks, no memory. What
 * the package remembers between plans must come to these digits.
 */
import type { Seconds } from "@trireme/core";
import {
  type CollectiveOperator,
  type Model,
  type Operator,
  type Pass,
  type Plan,
  type Stage,
  stageOperators,
} from "@trireme/workload";
import type { Communication, Pricer } from "@trireme/cost-model";

/** As the package has it. */
function overlapped(time: Seconds, behind: Seconds, least: Seconds): Seconds {
  const exposed = Math.min(time, Math.max(time - behind, least));
  return exposed + 0.17 * (time - exposed);
}

/** An operator of a pass with its time. */
interface PricedOperator {
  readonly operator: Operator;
  /** One execution. */
  readonly seconds: Seconds;
}

/** The costs of one microbatch through one stage, of one rank. */
interface ReferenceStage {
  readonly forward: Seconds;
  readonly recompute: Seconds;
  readonly inputGradient: Seconds;
  readonly weightGradient: Seconds;
  /** Exposed tensor-parallel communication, contained in forward, and in the three others. */
  readonly tensorParallel: { readonly forward: Seconds; readonly backward: Seconds };
  /** Exposed gathering and scattering of ZeRO-3, contained likewise. */
  readonly sharding: { readonly forward: Seconds; readonly backward: Seconds };
  /** Once per step: the optimizer's kernels. */
  readonly update: Seconds;
}

/** Prices stage `s`. */
export function referenceStage(
  m: Model,
  p: Plan,
  s: Stage,
  pricer: Pricer,
  network: Communication,
): ReferenceStage {
  const operators = stageOperators(m, p, s);
  const priced = operators.operators.map((operator) => ({
    operator,
    seconds: pricer.operator(operator),
  }));
  const compute = (pass: Pass): Seconds => {
    let device = 0;
    let host = 0;
    for (const { operator, seconds } of priced) {
      if (operator.pass !== pass) continue;
      device += operator.count * seconds;
      host += operator.count * (pricer.dispatch?.(operator) ?? 0);
    }
    return Math.max(device, host);
  };
  const exposed = (pass: Pass): Seconds =>
    exposedTensorParallel(p, pass, operators.collectives, priced, network);
  const [forward, recompute, input, weight] = [
    compute("forward"),
    compute("recompute"),
    compute("input-gradient"),
    compute("weight-gradient"),
  ];
  const tp = {
    forward: exposed("forward"),
    recompute: exposed("recompute"),
    input: exposed("input-gradient"),
    weight: exposed("weight-gradient"),
  };
  const sharded = (passes: readonly Pass[], behind: Seconds): Seconds =>
    exposedSharding(p, s, passes, behind, operators.collectives, network);
  const shardedForward = sharded(["forward"], forward + tp.forward);
  const shardedBackward = sharded(
    ["input-gradient", "weight-gradient"],
    recompute + input + weight,
  );
  return {
    forward: forward + tp.forward + shardedForward,
    recompute: recompute + tp.recompute,
    inputGradient: input + tp.input + shardedBackward,
    weightGradient: weight + tp.weight,
    tensorParallel: { forward: tp.forward, backward: tp.recompute + tp.input + tp.weight },
    sharding: { forward: shardedForward, backward: shardedBackward },
    update: compute("update"),
  };
}

function exposedTensorParallel(
  p: Plan,
  pass: Pass,
  collectives: readonly CollectiveOperator[],
  priced: readonly PricedOperator[],
  network: Communication,
): Seconds {
  let exposed = 0;
  for (const c of collectives) {
    if (c.axis === "dp" || c.pass !== pass) continue;
    const time = network.collective(c.kind, c.axis, c.bytes);
    const behind = hidingProduct(p, c, priced);
    exposed += c.count * (behind === undefined ? time : overlapped(time, behind, 0));
  }
  return exposed;
}

/**
 * Mean time of the products that a collective of this kind runs behind; undefined when the next
 * kernel waits for it. Split into tp chunks, a collective also runs behind its own product but for
 * the first chunk.
 */
function hidingProduct(
  p: Plan,
  c: CollectiveOperator,
  priced: readonly PricedOperator[],
): Seconds | undefined {
  if (c.axis === "cp") return c.kind === "all-to-all" ? undefined : attentionOf(p, priced, c.pass);
  const beside = p.overlapGradientProducts;
  const gather =
    beside && p.sequenceParallel && c.kind === "all-gather" && c.pass === "weight-gradient";
  const scatter =
    beside &&
    c.pass === "input-gradient" &&
    c.kind === (p.sequenceParallel ? "reduce-scatter" : "all-reduce");
  if (gather) return meanProduct(priced, "input-gradient");
  if (scatter) return meanProduct(priced, "weight-gradient");
  if (p.overlapTensorParallel && c.bytes > 2 ** 20) {
    const pass = c.pass === "recompute" ? "forward" : c.pass;
    return meanProduct(priced, pass) * (1 - 1 / p.tp);
  }
  return undefined;
}

/** Ring attention computes on the keys it has while the next come; the first arrive before anything runs. */
function attentionOf(p: Plan, priced: readonly PricedOperator[], pass: Pass): Seconds {
  const found = priced.find((x) => x.operator.kind === "attention" && x.operator.pass === pass);
  return (found?.seconds ?? 0) * (1 - 1 / p.cp);
}

function meanProduct(priced: readonly PricedOperator[], pass: Pass): Seconds {
  let time = 0;
  let count = 0;
  for (const { operator, seconds } of priced) {
    if (operator.kind !== "gemm" || operator.pass !== pass) continue;
    time += seconds * operator.count;
    count += operator.count;
  }
  return count === 0 ? 0 : time / count;
}

/** ZeRO-3: each layer's weights are gathered while the layer before computes; the first waits. */
function exposedSharding(
  p: Plan,
  s: Stage,
  passes: readonly Pass[],
  behind: Seconds,
  collectives: readonly CollectiveOperator[],
  network: Communication,
): Seconds {
  let time = 0;
  for (const c of collectives) {
    if (c.axis !== "dp" || !passes.includes(c.pass)) continue;
    const units = Math.max(1, s.layers);
    time += c.count * units * network.collective(c.kind, "dp", c.bytes / units);
  }
  if (!p.overlapDataParallel || time === 0) return time;
  return overlapped(time, behind, time / Math.max(1, s.layers));
}
