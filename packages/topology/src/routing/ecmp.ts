/**
 * Equal-cost multipath. A switch hashes a flow's tuple (source, destination, key, where the key
 * stands for ports or queue pairs) with a salt of its own, and takes candidate ⌊hash · n / 2³²⌋.
 * The hash is the finaliser of splitmix32 applied word by word: uniform, and stated, so that a set
 * of flows always collides in the same way.
 */

/** Hash of a flow's tuple under a seed, before any switch. */
export function tupleHash(seed: number, from: number, to: number, key: number): number {
  return mix(mix(mix(mix(seed ^ golden) ^ from) ^ to) ^ key);
}

/** Which of `count` candidates the switch `node` takes for a flow. */
export function ecmpChoice(hash: number, node: number, count: number): number {
  if (count === 1) return 0;
  return Math.trunc(((mix(hash ^ Math.imul(node + 1, golden)) >>> 0) * count) / 2 ** 32);
}

const golden = 0x9e3779b9;

function mix(x: number): number {
  let t = (x + golden) | 0;
  t = Math.imul(t ^ (t >>> 16), 0x21f0aaad);
  t = Math.imul(t ^ (t >>> 15), 0x735a2d97);
  return t ^ (t >>> 15);
}
