/**
 * Draws k different items one after the other, each in proportion to its weight among those left:
 * an alias table (Walker 1977; Vose 1991) in constant time per draw, drawing again what was drawn
 * already, and a plain walk over the rest when that happens too often.
 */
import type { Rng } from "@trireme/core";

/** A sampler of fixed weights. */
export class DistinctSampler {
  readonly #weights: Float64Array;
  readonly #keep: Float64Array;
  readonly #alias: Int32Array;
  readonly #taken: Uint8Array;

  /** @param weights Not negative, with a positive sum. */
  constructor(weights: Float64Array) {
    const n = weights.length;
    this.#weights = weights;
    this.#keep = new Float64Array(n);
    this.#alias = new Int32Array(n);
    this.#taken = new Uint8Array(n);
    const total = weights.reduce((sum, w) => sum + w, 0);
    const scaled = weights.map((w) => (w / total) * n);
    const small: number[] = [];
    const large: number[] = [];
    scaled.forEach((w, i) => (w < 1 ? small : large).push(i));
    while (small.length > 0 && large.length > 0) {
      const [s, l] = [small.pop()!, large.at(-1)!];
      this.#keep[s] = scaled[s]!;
      this.#alias[s] = l;
      scaled[l]! -= 1 - scaled[s]!;
      if (scaled[l]! < 1) small.push(large.pop()!);
    }
    // What is left over is 1 up to rounding.
    for (const i of [...small, ...large]) {
      this.#keep[i] = 1;
      this.#alias[i] = i;
    }
  }

  /** Writes `k` different items to `out[at, at + k)`; k is at most the number of items. */
  draw(rng: Rng, k: number, out: Int32Array, at: number): void {
    const n = this.#weights.length;
    for (let j = 0; j < k; j++) {
      let item = -1;
      for (let attempt = 0; attempt < 16; attempt++) {
        const x = rng.float() * n;
        const i = Math.floor(x);
        const candidate = x - i < this.#keep[i]! ? i : this.#alias[i]!;
        if (this.#taken[candidate] === 0) {
          item = candidate;
          break;
        }
      }
      if (item < 0) item = this.#walk(rng);
      this.#taken[item] = 1;
      out[at + j] = item;
    }
    for (let j = 0; j < k; j++) this.#taken[out[at + j]!] = 0;
  }

  /** One of the items not taken, by weight; the first of them when all their weights are 0. */
  #walk(rng: Rng): number {
    let left = 0;
    for (let i = 0; i < this.#weights.length; i++) {
      if (this.#taken[i] === 0) left += this.#weights[i]!;
    }
    let x = rng.float() * left;
    let last = -1;
    for (let i = 0; i < this.#weights.length; i++) {
      if (this.#taken[i] === 1) continue;
      if (last < 0 || this.#weights[i]! > 0) last = i;
      x -= this.#weights[i]!;
      if (x < 0) return i;
    }
    return last;
  }
}
