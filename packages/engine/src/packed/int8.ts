/** Weights in 8 bits with a scale for each output (Dettmers et al., LLM.int8(), 2022, section 2.1): code · scale / 127. */
export interface Int8 {
  /** [rows, columns], two's complement. */
  readonly codes: Int8Array<ArrayBuffer>;
  /** Greatest magnitude of each row. */
  readonly scales: Float32Array<ArrayBuffer>;
}

export function toInt8(values: Float32Array, rows: number): Int8 {
  const cols = values.length / rows;
  const codes = new Int8Array(values.length);
  const scales = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    const own = values.subarray(row * cols, (row + 1) * cols);
    let greatest = 0;
    for (const value of own) greatest = Math.max(greatest, Math.abs(value));
    scales[row] = greatest;
    const factor = codesOf(greatest);
    for (let i = 0; i < cols; i++) {
      codes[row * cols + i] = roundEven(Math.fround(own[i]! * factor));
    }
  }
  return { codes, scales };
}

/** Codes to a unit, as float32 has it, or where that has no such number exactly. */
function codesOf(greatest: number): number {
  if (greatest === 0) return 0;
  return greatest < 1e-36 ? 127 / greatest : Math.fround(Math.fround(1 / greatest) * 127);
}

function roundEven(x: number): number {
  const down = Math.floor(x);
  const rest = x - down;
  if (rest !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}
