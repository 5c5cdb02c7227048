/**
 * What happens to a simulated cluster: drawn from a seed as plain data, so that a history can be
 * printed, cut down and played again.
 */
import { createRng, type Rng, type Seconds } from "@trireme/core";

import type { ControllerOptions } from "../recovery/options.ts";

export type Mishap =
  /** A host dies; it boots again after `down`, Infinity for never. */
  | { readonly kind: "kill"; readonly hosts: readonly number[]; readonly down: Seconds }
  /** Hardware breaks: training stops, and the agent has evidence. */
  | { readonly kind: "break"; readonly host: number }
  /** A worker crashes. */
  | { readonly kind: "crash"; readonly host: number }
  /** Training stops and nobody knows why. */
  | { readonly kind: "hang" }
  /** The agent reports but obeys no order any more. */
  | { readonly kind: "wedge"; readonly host: number }
  /** Messages between hosts and controller are lost, both ways or one way. */
  | {
      readonly kind: "cut";
      readonly hosts: readonly number[];
      readonly way: "both" | "reports" | "orders";
      readonly lasts: Seconds;
    }
  /** The controller dies and is started again from its record, on a clock that is `skew` off. */
  | { readonly kind: "restart"; readonly down: Seconds; readonly skew: Seconds }
  /** A second controller takes over while the first still answers, for `overlap`. */
  | { readonly kind: "take-over"; readonly overlap: Seconds; readonly skew: Seconds }
  /** The batch that is `ahead` batches on spikes the loss whenever it is trained. */
  | { readonly kind: "poison"; readonly ahead: number }
  /** Whoever trains the batch that is `ahead` batches on crashes. */
  | { readonly kind: "trap"; readonly ahead: number }
  /** New code, which crashes whoever trains on it if it is bad. */
  | { readonly kind: "update"; readonly urgent: boolean; readonly bad: boolean }
  /** Aggregated evidence names a group, the good with the bad. */
  | { readonly kind: "suspect"; readonly hosts: readonly number[] }
  /** Repairs whatever is broken and evicted, and hands it back. */
  | { readonly kind: "repair" };

export interface HistoryScript {
  readonly seed: number;
  readonly options: ControllerOptions;
  /** Mean time between reports; each host's clock runs up to a tenth fast or slow. */
  readonly heartbeat: Seconds;
  /** Chance that a message is lost, that it comes twice; longest delay. */
  readonly network: { readonly loss: number; readonly copies: number; readonly delay: Seconds };
  /** Steps between saves; 0: a step done is a step saved. */
  readonly saveEvery: number;
  /** Chance that the controller dies just before or just after a write of its record. */
  readonly deadlyWrites: number;
  readonly mishaps: readonly { readonly at: Seconds; readonly mishap: Mishap }[];
  /** From here on nothing breaks and no message is cut off; losses and delays stay. */
  readonly quiet: Seconds;
}

/** Mishaps with how often each is drawn. */
const odds: readonly (readonly [Mishap["kind"], number])[] = [
  ["kill", 5],
  ["break", 5],
  ["crash", 6],
  ["hang", 2],
  ["wedge", 1],
  ["cut", 5],
  ["restart", 4],
  ["take-over", 2],
  ["poison", 3],
  ["trap", 0.5],
  ["update", 3],
  ["suspect", 2],
  ["repair", 5],
];
const sum = odds.reduce((total, [, each]) => total + each, 0);

/** The script of a seed: three to eight hosts, none to three standbys, up to a dozen mishaps. */
export function drawScript(seed: number): HistoryScript {
  const rng = createRng(seed);
  const unit = rng.float() < 0.2 ? 2 : 1;
  const trained = unit * (2 + rng.integer(unit === 1 ? 5 : 3)) - (rng.float() < 0.1 ? unit : 0);
  const spare = rng.integer(4);
  const all = Array.from({ length: trained + spare }, (_, host) => host);
  const lease = rng.float() < 0.4;
  const options: ControllerOptions = {
    hosts: all.slice(0, trained),
    standbys: all.slice(trained),
    deadline: 30,
    minimum: Math.max(1, Math.floor(trained / unit / 2)) * unit,
    restarts: 3,
    unit,
    patience: rng.float() < 0.3 ? 40 : 0,
    leave: 120,
    stall: 90,
    blackout: 90,
    keep: 5,
    updateWindow: 60,
    regrow: rng.float() < 0.5 ? 20 : Infinity,
    spike: {
      reattempts: rng.integer(2),
      back: 1 + rng.integer(3),
      margin: rng.integer(3),
      limit: 4,
    },
    ...(lease ? { lease: 45 } : {}),
  };
  const quiet = 250;
  const count = rng.integer(13);
  const mishaps = Array.from({ length: count }, () => ({
    at: 5 + (quiet - 5) * rng.float(),
    mishap: drawMishap(rng, all, trained),
  })).toSorted((a, b) => a.at - b.at);
  return {
    seed,
    options,
    heartbeat: 4,
    network: { loss: 0.2 * rng.float(), copies: 0.2 * rng.float(), delay: 10 * rng.float() },
    saveEvery: rng.integer(4),
    deadlyWrites: rng.float() < 0.3 ? 0.05 : 0,
    // Leases bind the hosts to one controller at a time: whoever elects it must wait them out.
    mishaps: lease ? mishaps.filter(({ mishap }) => mishap.kind !== "take-over") : mishaps,
    quiet,
  };
}

function drawMishap(rng: Rng, all: readonly number[], trained: number): Mishap {
  let left = sum * rng.float();
  const [kind] = odds.find(([, each]) => (left -= each) < 0)!;
  const host = rng.integer(all.length);
  // A switch or a power supply takes neighbours with it, at times all hosts that train.
  const group = (): readonly number[] =>
    rng.float() < 0.6
      ? [host]
      : rng.float() < 0.2
        ? all.slice(0, trained)
        : all.slice(host, host + 2 + rng.integer(2));
  const skew = 20 * (rng.float() - 0.5);
  switch (kind) {
    case "kill":
      return { kind, hosts: group(), down: rng.float() < 0.5 ? Infinity : 60 * rng.float() };
    case "break":
    case "crash":
    case "wedge":
      return { kind, host };
    case "hang":
    case "repair":
      return { kind };
    case "cut": {
      const way = rng.integer(3);
      const lasts = 80 * rng.float();
      const hosts = rng.float() < 0.2 ? all : group();
      return { kind, hosts, way: way === 0 ? "both" : way === 1 ? "reports" : "orders", lasts };
    }
    case "restart":
      return { kind, down: 30 * rng.float() ** 2, skew };
    case "take-over":
      return { kind, overlap: 30 * rng.float(), skew };
    case "poison":
    case "trap":
      return { kind, ahead: 1 + rng.integer(6) };
    case "update":
      return { kind, urgent: rng.float() < 0.5, bad: rng.float() < 0.4 };
    case "suspect":
      return { kind, hosts: all.slice(host, host + 2) };
  }
}
