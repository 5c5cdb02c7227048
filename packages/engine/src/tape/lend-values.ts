import type { Pool } from "../memory/pool.ts";
import type { Parameter } from "./tape.ts";

/** Lends the values of a parameter in float32: where they lie, or written out for as long as they are used. */
export function lendValues<T>(pool: Pool, parameter: Parameter, use: (pointer: number) => T): T {
  const { dims, packed } = parameter;
  if (packed === undefined) return use(parameter.value.pointer);
  const whole = pool.allocate(dims);
  packed.unpack(whole.pointer);
  const result = use(whole.pointer);
  pool.free(whole);
  return result;
}

/** Elements that are written out at a time: 1 MiB, or rows enough for a fast product. */
const partElements = 2 ** 18;
const leastRows = 256;

/** Lends the values of a matrix in fewer bits a part after another, of whole rows, each until the next. */
export function lendRows(
  pool: Pool,
  dims: readonly number[],
  unpackRows: (pointer: number, first: number, count: number) => void,
  use: (pointer: number, first: number, count: number) => void,
): void {
  const [height, width] = [dims[0]!, dims[1]!];
  const most = Math.min(height, Math.max(leastRows, Math.floor(partElements / width)));
  const part = pool.allocate([most, width]);
  for (let first = 0; first < height; first += most) {
    const count = Math.min(most, height - first);
    unpackRows(part.pointer, first, count);
    use(part.pointer, first, count);
  }
  pool.free(part);
}
