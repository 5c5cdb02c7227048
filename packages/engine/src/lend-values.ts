import type { Pool } from "./pool.ts";
import type { Parameter } from "./tape.ts";

/** Lends the values of a parameter in float32: where they lie, or written out for as long as they are used. */
export function lendValues<T>(pool: Pool, parameter: Parameter, use: (pointer: number) => T): T {
  const { packed } = parameter;
  if (packed === undefined) return use(parameter.value.pointer);
  const whole = pool.allocate(packed.dims);
  packed.unpack(whole.pointer);
  const result = use(whole.pointer);
  pool.free(whole);
  return result;
}
