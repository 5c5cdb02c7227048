/**
 * α-β-γ closed forms: a message of s bytes takes α + β s, and adding s bytes takes γ s (Thakur,
 * Rabenseifner, Gropp 2005; Chan, Heimlich, Purkayastha, van de Geijn 2007). S is the full buffer,
 * of an all-to-all what one rank sends.
 */
import { type Bytes, type Seconds, TriremeError, nearestDivisor } from "@trireme/core";
import { type PlanOperation, checkRanks } from "../plan/plan.ts";

/** Parameters of a closed form. */
export interface ClosedFormOptions {
  readonly ranks: number;
  readonly bytes: Bytes;
  /** Seconds of a message. */
  readonly alpha: Seconds;
  /** Seconds a byte sent. */
  readonly beta: number;
  /** Seconds a byte added. Default 0. */
  readonly gamma?: number;
  /** Ranks of a host and the network's α and β, for two-level algorithms. */
  readonly perHost?: number;
  readonly outer?: { readonly alpha: Seconds; readonly beta: number };
  /** Chunks of a pipelined tree or chain. Default: the number that is best. */
  readonly pipeline?: number;
  /** Base of bcube. Default 2. */
  readonly base?: number;
}

/** Messages in a row, bytes sent and bytes added of a rank. */
export interface Cost {
  readonly steps: number;
  readonly sent: Bytes;
  readonly added: Bytes;
}

const logarithm = (n: number): number => Math.ceil(Math.log2(n));
const powerOfTwo = (n: number): number => 2 ** Math.floor(Math.log2(n));

type Form = (n: number, bytes: Bytes, options: ClosedFormOptions) => Cost;

const ring: Form = (n, s) => ({ steps: n - 1, sent: ((n - 1) / n) * s, added: 0 });
const reducing =
  (form: Form): Form =>
  (n, s, o) => {
    const cost = form(n, s, o);
    return { ...cost, added: cost.sent };
  };
const binomial: Form = (n, s) => ({ steps: logarithm(n), sent: logarithm(n) * s, added: 0 });
/** The root of a binomial scatter or gather sends or receives all but its own. */
const binomialParts: Form = (n, s) => ({
  steps: logarithm(n),
  sent: ((n - 1) / n) * s,
  added: 0,
});
const logarithmic: Form = (n, s) => ({ steps: logarithm(n), sent: ((n - 1) / n) * s, added: 0 });
const direct: Form = (n, s) => ({ steps: 1, sent: ((n - 1) / n) * s, added: 0 });

/** Chunks of a pipeline of `hops` that make (k + hops - 1) (α + β S / k) least. */
function pipelined(hops: number, s: Bytes, { alpha, beta, pipeline }: ClosedFormOptions): Cost {
  const best = alpha > 0 ? Math.sqrt(((hops - 1) * beta * s) / alpha) : 1e6;
  const k = pipeline ?? Math.max(1, Math.round(best));
  return { steps: k + hops - 1, sent: ((k + hops - 1) / k) * s, added: 0 };
}

const forms: Readonly<Partial<Record<PlanOperation, Readonly<Record<string, Form>>>>> = {
  "all-reduce": {
    ring: (n, s) => ({ steps: 2 * (n - 1), sent: (2 * (n - 1) * s) / n, added: ((n - 1) * s) / n }),
    // Two trees, each with half of the data; up and down overlap in a pipeline of twice the height.
    tree: (n, s, o) => {
      const { steps, sent } = pipelined(2 * logarithm(n), s / 2, o);
      return { steps, sent: 2 * sent, added: s };
    },
    "recursive-doubling": (n, s) => {
      const rounds = Math.log2(powerOfTwo(n));
      const folded = powerOfTwo(n) === n ? 0 : 1;
      const steps = rounds + 2 * folded;
      return { steps, sent: steps * s, added: (rounds + folded) * s };
    },
    rabenseifner: (n, s) => {
      const p = powerOfTwo(n);
      const folded = p === n ? 0 : 1;
      const share = ((p - 1) / p) * s;
      return {
        steps: 2 * Math.log2(p) + 2 * folded,
        sent: 2 * share + 2 * folded * s,
        added: share + folded * s,
      };
    },
    "one-shot": (n, s) => ({ steps: 1, sent: (n - 1) * s, added: (n - 1) * s }),
    "two-shot": (n, s) => ({ steps: 2, sent: (2 * (n - 1) * s) / n, added: ((n - 1) * s) / n }),
    bcube: (n, s, { base = 2 }) => ({
      steps: 2 * Math.round(Math.log(n) / Math.log(base)),
      sent: (2 * (n - 1) * s) / n,
      added: ((n - 1) * s) / n,
    }),
    // Up once and down once; the switch adds.
    nvls: (_, s) => ({ steps: 2, sent: s, added: 0 }),
    sharp: (_, s) => ({ steps: 2, sent: s, added: 0 }),
  },
  "reduce-scatter": {
    ring: reducing(ring),
    pairwise: reducing(ring),
    direct: reducing(direct),
    "recursive-halving": reducing(logarithmic),
    pat: reducing(logarithmic),
  },
  "all-gather": {
    ring,
    direct,
    bruck: logarithmic,
    "recursive-doubling": logarithmic,
    pat: logarithmic,
  },
  broadcast: { binomial, ring: (n, s, o) => pipelined(n - 1, s, o) },
  reduce: {
    binomial: reducing(binomial),
    ring: (n, s, o) => ({ ...pipelined(n - 1, s, o), added: s }),
  },
  scatter: { binomial: binomialParts },
  gather: { binomial: binomialParts },
  "all-to-all": {
    pairwise: ring,
    direct,
    bruck: (n, s) => {
      let blocks = 0;
      for (let i = 1; i < n; i++) for (let bit = 1; bit < n; bit *= 2) if (i & bit) blocks++;
      return { steps: logarithm(n), sent: (blocks * s) / n, added: 0 };
    },
  },
  barrier: { dissemination: (n) => ({ steps: logarithm(n), sent: 0, added: 0 }) },
};

function check(options: ClosedFormOptions): void {
  const { ranks, bytes, alpha, beta, gamma = 0, perHost = 1, pipeline = 1, base = 2 } = options;
  checkRanks(ranks);
  for (const [name, value] of Object.entries({ bytes, alpha, beta, gamma })) {
    if (value >= 0 && value < Infinity) continue;
    throw new TriremeError("CLOSED_FORM", `${name} = ${value} must be 0 or more, and finite`);
  }
  for (const [name, value, least] of [
    ["perHost", perHost, 1],
    ["pipeline", pipeline, 1],
    ["base", base, 2],
  ] as const) {
    if (Number.isSafeInteger(value) && value >= least) continue;
    throw new TriremeError(
      "CLOSED_FORM",
      `${name} = ${value} must be a whole number from ${least} up`,
    );
  }
}

/**
 * Steps and bytes of an algorithm on one level of links; undefined when there is no closed form. One
 * rank costs nothing. Throws `RANKS` and `CLOSED_FORM` on numbers out of range.
 */
export function closedFormCost(
  operation: PlanOperation,
  algorithm: string,
  options: ClosedFormOptions,
): Cost | undefined {
  check(options);
  const known = forms[operation];
  const form =
    known !== undefined && Object.hasOwn(known, algorithm) ? known[algorithm] : undefined;
  if (options.ranks === 1) return form && { steps: 0, sent: 0, added: 0 };
  return form?.(options.ranks, options.bytes, options);
}

/**
 * Seconds of an algorithm; two-level ones price their inner and outer parts apart. Throws `ALGORITHM`
 * where there is no closed form, `RANKS` and `CLOSED_FORM` on numbers out of range.
 */
export function closedForm(
  operation: PlanOperation,
  algorithm: string,
  options: ClosedFormOptions,
): Seconds {
  const { ranks, bytes, alpha, beta, gamma = 0, perHost, outer } = options;
  check(options);
  if (perHost !== undefined && outer !== undefined) {
    const hosts = ranks / perHost;
    if (!Number.isInteger(hosts)) {
      throw new TriremeError(
        "CLOSED_FORM",
        `perHost = ${perHost} must divide ${ranks} ranks; the nearest that does is ${nearestDivisor(ranks, perHost)}`,
      );
    }
    if (algorithm === "hierarchical") {
      const inner = { alpha, beta, gamma, ranks: perHost, bytes };
      const between = { ...outer, gamma, ranks: hosts, bytes: bytes / perHost };
      return (
        closedForm("reduce-scatter", "ring", inner) +
        closedForm("all-reduce", "ring", between) +
        closedForm("all-gather", "ring", inner)
      );
    }
    if (algorithm === "2d" || algorithm === "rail-aligned") {
      return (
        (perHost - 1) * alpha +
        (perHost > 1 ? ((perHost - 1) / perHost) * bytes * beta : 0) +
        (hosts - 1) * outer.alpha +
        (hosts > 1 ? ((hosts - 1) / hosts) * bytes * outer.beta : 0)
      );
    }
  }
  const cost = closedFormCost(operation, algorithm, options);
  if (cost === undefined) {
    throw new TriremeError(
      "ALGORITHM",
      `no closed form for ${operation} by "${algorithm}"; known are ${Object.keys(forms[operation] ?? {}).join(", ")}`,
    );
  }
  return cost.steps * alpha + cost.sent * beta + cost.added * gamma;
}
