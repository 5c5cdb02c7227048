/**
 * A matrix product on a GPU. A library cuts the result into tiles, a multiprocessor computes one
 * at a time, and the last wave is as long as a full one; when the tiles are too few, the inner
 * dimension is cut as well and the parts are added up in memory. Small tiles reuse less of what
 * they load. The library takes the best, and so does this. (NVIDIA, Matrix Multiplication
 * Background User's Guide, "Tile quantization" and "Wave quantization".) What surrounds a tile's arithmetic is
 * paid in each wave, but once where a multiprocessor has room for two tiles' sums: Blackwell's tensor memory.
 */
import { type BytesPerSecond, type FlopsPerSecond, type Seconds, us } from "@trireme/core";

/** What a product runs on. */
export interface MatrixUnits {
  /** Sustained rate of the whole device. */
  readonly rate: FlopsPerSecond;
  readonly multiprocessors: number;
  /** Sustained. */
  readonly bandwidth: BytesPerSecond;
  /** Whether a tile is stored, and the next one's operands are loaded, behind arithmetic. */
  readonly storesBehind: boolean;
  /** Whether there are tiles whose sides are no powers of two. */
  readonly unevenTiles: boolean;
  /** Whether there are tiles of 192 and 256 both ways. */
  readonly largeTiles: boolean;
}

type Tile = readonly [rows: number, columns: number, reuse: number];

/** Rows, columns, and the fraction of the sustained rate that the tile's operand reuse allows. */
const tiles: readonly Tile[] = [
  [256, 128, 1],
  [128, 256, 1],
  [128, 128, 0.96],
  [128, 64, 0.82],
  [64, 128, 0.82],
  [64, 64, 0.66],
];

/**
 * Hopper's matrix instructions take any multiple of 8 columns up to 256 (PTX ISA, wgmma), and its libraries use them.
 */
const moreTiles: readonly Tile[] = [...tiles, [128, 160, 0.98], [160, 128, 0.98]];

/**
 * A compute unit of CDNA holds the sums of 256 x 256, and AMD's libraries pick 192 too (ROCm blogs, Measuring
 * Max-Achievable FLOPs, part 2).
 */
const largerTiles: readonly Tile[] = [...tiles, [256, 256, 1], [256, 192, 1], [192, 256, 1]];

const splits: readonly number[] = [1, 2, 4, 8];

/** Until a tile's first operands have come from memory. */
export const fill: Seconds = us(0.8);

/**
 * Of a tile's store in 16 bits, at its multiprocessor's share of the memory, what is not hidden: of the two blocks or
 * groups of warps that share a multiprocessor one computes while the other stores.
 */
const storeShown = 0.5;

/**
 * Seconds of `batch` products C[m, n] = A[m, k] B[k, n] that move `bytes`, without launch; `inOrder` where the inner
 * dimension cannot be cut, since each step follows from the one before.
 */
export function gemmTime(
  units: MatrixUnits,
  batch: number,
  m: number,
  n: number,
  k: number,
  bytes: number,
  inOrder = false,
): Seconds {
  const perMultiprocessor = units.rate / units.multiprocessors;
  let best = Infinity;
  for (const [rows, columns, reuse] of tilesOf(units)) {
    const grid = batch * Math.ceil(m / rows) * Math.ceil(n / columns);
    const step = (2 * rows * columns) / (perMultiprocessor * reuse);
    const store = (2 * rows * columns * units.multiprocessors) / units.bandwidth;
    const around = fill + storeShown * store;
    for (const split of splits) {
      // A part shorter than 256 has no steady state to speak of.
      if (split > 1 && (inOrder || k < 256 * split)) break;
      const waves = Math.ceil((grid * split) / units.multiprocessors);
      const parts = split > 1 ? (8 * batch * m * n * split) / units.bandwidth : 0;
      const overhead = units.storesBehind ? around : waves * around;
      best = Math.min(best, waves * step * Math.ceil(k / split) + overhead + parts);
    }
  }
  return Math.max(best, bytes / units.bandwidth);
}

function tilesOf({ unevenTiles, largeTiles }: MatrixUnits): readonly Tile[] {
  if (largeTiles) return largerTiles;
  return unevenTiles ? moreTiles : tiles;
}
