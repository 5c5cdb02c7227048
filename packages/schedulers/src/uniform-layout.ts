/**
 * Equal shares of layers for all stages, with counts of their own for the first and last rank
 * (Megatron-LM's decoder_first_pipeline_num_layers and decoder_last_pipeline_num_layers). Refuses
 * what does not divide: rounding down would train a smaller model without a word (Megatron-LM#468,
 * #1304).
 */
import { TriremeError } from "@trireme/core";
import type { StageLayout } from "./layout.ts";

export interface UniformLayoutOptions {
  readonly layers: number;
  readonly ranks: number;
  /** Stages per rank; 1 when left out. */
  readonly chunks?: number;
  /** Layers of the first rank, over all its chunks. */
  readonly firstRankLayers?: number;
  /** Layers of the last rank, over all its chunks. */
  readonly lastRankLayers?: number;
}

/**
 * The layout with equal shares.
 * @throws TriremeError `LAYOUT` when layers do not divide over stages, with the nearest that do.
 */
export function uniformLayout(o: UniformLayoutOptions): StageLayout {
  const { layers, ranks, chunks = 1, firstRankLayers, lastRankLayers } = o;
  for (const [name, n, least] of [
    ["layers", layers, 0],
    ["ranks", ranks, 1],
    ["chunks", chunks, 1],
    ["firstRankLayers", firstRankLayers ?? 0, 0],
    ["lastRankLayers", lastRankLayers ?? 0, 0],
  ] as const) {
    if (!Number.isInteger(n) || n < least || n > 2 ** 20) {
      throw new TriremeError("LAYOUT", `${name} = ${n} is not an integer in ${least}..2^20`);
    }
  }
  if (ranks * chunks > 2 ** 20) {
    throw new TriremeError(
      "LAYOUT",
      `${ranks} ranks x ${chunks} chunks = ${ranks * chunks} stages; at most 2^20`,
    );
  }
  const own = [firstRankLayers, lastRankLayers].filter((n) => n !== undefined);
  if (own.length > 0 && ranks < 2) {
    throw new TriremeError(
      "LAYOUT",
      `firstRankLayers and lastRankLayers are for 2 or more ranks; 1 rank holds all ${layers} layers`,
    );
  }
  const rest = layers - own.reduce((a, b) => a + b, 0);
  const middle = ranks - own.length;
  if (rest < 0 || (middle === 0 && rest !== 0)) {
    throw new TriremeError(
      "LAYOUT",
      `the first and last rank take ${layers - rest} of ${layers} layers, but ${middle} ranks are left for the other ${rest}`,
    );
  }
  const share = (count: number, stages: number, where: string): number => {
    if (count % stages === 0) return count / stages;
    const each = Math.floor(count / stages);
    throw new TriremeError(
      "LAYOUT",
      `${count} layers do not divide over ${stages} stages${where}: ${each} each would build only ` +
        `${each * stages}; use ${each * stages} or ${(each + 1) * stages}, a layout, or balanceStages`,
    );
  };
  const perMiddle = middle === 0 ? 0 : share(rest, middle * chunks, "");
  const first =
    firstRankLayers === undefined
      ? perMiddle
      : share(firstRankLayers, chunks, " of the first rank");
  const last =
    lastRankLayers === undefined ? perMiddle : share(lastRankLayers, chunks, " of the last rank");
  const stages = Array.from({ length: ranks * chunks }, (_, k) => {
    const rank = k % ranks;
    const n = rank === 0 ? first : rank === ranks - 1 ? last : perMiddle;
    const letters = "t".repeat(n);
    return `${k === 0 ? "E" : ""}${letters}${k === ranks * chunks - 1 ? "L" : ""}`;
  });
  return { ranks, chunks, stages };
}
