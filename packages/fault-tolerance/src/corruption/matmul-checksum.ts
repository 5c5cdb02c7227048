/**
 * ABFT: checksums on a matrix product (Huang and Abraham, IEEE ToC 1984). With C = A·B, the sums of
 * C's columns are (eᵀA)·B and of its rows A·(B·e): O(mk + kn + mn) against O(mkn). One wrong value
 * breaks one row and one column, which place it.
 *
 * A_MK, B_KN, C_MN, row by row; sums are in float64, so that what is left is the product's own rounding.
 */
import { TriremeError } from "@trireme/core";
import { type FloatArray, checkFormat, fromBfloat16 } from "./bits.ts";

export interface MatmulShape {
  readonly m: number;
  readonly k: number;
  readonly n: number;
}

export interface ChecksumOptions {
  /** Format of C; float32 by default. A and B are float32 values, exact in the format of the product. */
  readonly output?: "float32" | "bfloat16";
  /**
   * Standard deviations of rounding that a checksum may be off by; 6 by default. Roundings are taken as
   * independent, so it is a false-alarm level and not a proof.
   */
  readonly sigmas?: number;
}

export interface ChecksumReport {
  readonly ok: boolean;
  /** Rows and columns of C whose sums are off, ascending. */
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  /** Row-major index of the wrong value, where exactly one row and one column are off. */
  readonly at?: number;
  /** What that value should be. */
  readonly value?: number;
}

/** Relative error of one rounding, as a standard deviation: 2^-p/√3, p the bits with the hidden one. */
const rounding = { float32: 2 ** -24 / Math.sqrt(3), bfloat16: 2 ** -8 / Math.sqrt(3) };

/**
 * Checks C = A·B by row and column sums.
 * @throws TriremeError "CHECKSUM" when an array is not of the shape, or sigmas is not above 0.
 */
export function checkMatmul(
  a: Float32Array,
  b: Float32Array,
  c: FloatArray,
  shape: MatmulShape,
  options: ChecksumOptions = {},
): ChecksumReport {
  const { m, k, n } = shape;
  const { output = "float32", sigmas = 6 } = options;
  checkSizes([a, b, c], shape, sigmas);
  checkFormat(c, output);
  // Sums of A over rows and of B over columns, with those of the squares beside them.
  const [a_K, aa_K] = columnSums(a, m, k);
  const [b_K, bb_K] = rowSums(b, k, n);
  const rows = new Float64Array(m);
  const columns = new Float64Array(n);
  const rowVariance = new Float64Array(m);
  const columnVariance = new Float64Array(n);
  for (let i = 0; i < m; i++) {
    for (let l = 0; l < k; l++) {
      const x = a[i * k + l]!;
      rows[i]! += x * b_K[l]!;
      rowVariance[i]! += x * x * bb_K[l]!;
    }
  }
  for (let l = 0; l < k; l++) {
    for (let j = 0; j < n; j++) {
      const y = b[l * n + j]!;
      columns[j]! += a_K[l]! * y;
      columnVariance[j]! += aa_K[l]! * y * y;
    }
  }
  // What C holds is taken off; its squares size the rounding of its own format.
  const rowSquares = new Float64Array(m);
  const columnSquares = new Float64Array(n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      const word = c[i * n + j]!;
      const value = output === "bfloat16" ? fromBfloat16(word) : word;
      rows[i]! -= value;
      columns[j]! -= value;
      rowSquares[i]! += value * value;
      columnSquares[j]! += value * value;
    }
  }
  const off = (sums: Float64Array, products: Float64Array, squares: Float64Array): number[] =>
    Array.from(sums, (_, i) => i).filter((i) => {
      // Each of a value's k partial sums is rounded, at about the size of the value or of its products
      // together, whichever is larger; then each value once to its format. A wrong value widens the
      // tolerance by some 10^-5 of itself only, unless it is not finite.
      const inner = k * Math.max(products[i]!, squares[i]!) * rounding.float32 ** 2;
      const outer = squares[i]! * rounding[output] ** 2;
      const within = Math.abs(sums[i]!) <= sigmas * Math.sqrt(inner + outer);
      return !(within && Number.isFinite(sums[i]!));
    });
  const wrong = {
    rows: off(rows, rowVariance, rowSquares),
    columns: off(columns, columnVariance, columnSquares),
  };
  const ok = wrong.rows.length === 0 && wrong.columns.length === 0;
  if (wrong.rows.length !== 1 || wrong.columns.length !== 1) return { ok, ...wrong };
  const [i, j] = [wrong.rows[0]!, wrong.columns[0]!];
  // Computed again rather than from the checksum: next to a value of 10^38 nothing is left of it.
  let value = 0;
  for (let l = 0; l < k; l++) value += a[i * k + l]! * b[l * n + j]!;
  return { ok, ...wrong, at: i * n + j, value };
}

function columnSums(x: Float32Array, height: number, width: number): [Float64Array, Float64Array] {
  const sums = new Float64Array(width);
  const squares = new Float64Array(width);
  for (let i = 0; i < height; i++) {
    for (let j = 0; j < width; j++) {
      const value = x[i * width + j]!;
      sums[j]! += value;
      squares[j]! += value * value;
    }
  }
  return [sums, squares];
}

function rowSums(x: Float32Array, height: number, width: number): [Float64Array, Float64Array] {
  const sums = new Float64Array(height);
  const squares = new Float64Array(height);
  for (let i = 0; i < height; i++) {
    for (let j = 0; j < width; j++) {
      const value = x[i * width + j]!;
      sums[i]! += value;
      squares[i]! += value * value;
    }
  }
  return [sums, squares];
}

function checkSizes(
  [a, b, c]: readonly [FloatArray, FloatArray, FloatArray],
  { m, k, n }: MatmulShape,
  sigmas: number,
): void {
  if (a.length !== m * k || b.length !== k * n || c.length !== m * n) {
    throw new TriremeError(
      "CHECKSUM",
      `A, B, C have ${a.length}, ${b.length}, ${c.length} values, but ${m}x${k} times ${k}x${n} needs ${m * k}, ${k * n}, ${m * n}`,
    );
  }
  if (!(sigmas > 0))
    throw new TriremeError("CHECKSUM", `sigmas = ${sigmas} must be above 0; use 6`);
}
