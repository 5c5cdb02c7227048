/** A plain float32 matrix product, the code under test for the checksums. A_MK, B_KN, C_MN. */
import { type Rng } from "@trireme/core";
import type { MatmulShape } from "@trireme/fault-tolerance";

export function matmul(a: Float32Array, b: Float32Array, { m, k, n }: MatmulShape): Float32Array {
  const c = new Float32Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let l = 0; l < k; l++)
        sum = Math.fround(sum + Math.fround(a[i * k + l]! * b[l * n + j]!));
      c[i * n + j] = sum;
    }
  }
  return c;
}

export function normals(size: number, rng: Rng, mean = 0): Float32Array {
  return Float32Array.from({ length: size }, () => mean + rng.normal());
}
