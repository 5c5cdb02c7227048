/** Checks at the public doors: counts that must be integers, arrays that must have a shape. */
import { TriremeError } from "@trireme/core";

/** Throws unless `value` is an integer of at least `least` and at most `most`. */
export function requireInteger(
  name: string,
  value: number,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const nearest = Number.isFinite(value)
    ? Math.min(most, Math.max(least, Math.round(value)))
    : least;
  throw new TriremeError(
    "MOE_SHAPE",
    `${name} is ${value}; it must be an integer from ${least} to ${most}, such as ${nearest}`,
  );
}

/** Throws unless `array` holds exactly `length` elements; `shape` says how that comes about. */
export function requireLength(
  name: string,
  array: ArrayLike<number>,
  length: number,
  shape: string,
): void {
  if (array.length === length) return;
  throw new TriremeError(
    "MOE_SHAPE",
    `${name} holds ${array.length} elements, but ${shape} needs ${length}`,
  );
}

/** Throws unless `part` divides `whole`; the message names the nearest whole that would do. */
export function requireDivisible(
  wholeName: string,
  whole: number,
  partName: string,
  part: number,
): void {
  if (whole % part === 0) return;
  const nearest = Math.max(part, Math.round(whole / part) * part);
  throw new TriremeError(
    "MOE_SHAPE",
    `${whole} ${wholeName} do not divide over ${part} ${partName}; the nearest number that does is ${nearest}`,
  );
}

/** Throws unless `value` is a finite number of at least `least`. */
export function requireNumber(name: string, value: number, least: number): void {
  if (Number.isFinite(value) && value >= least) return;
  throw new TriremeError(
    "MOE_RANGE",
    `${name} is ${value}; it must be a finite number of at least ${least}, such as ${least}`,
  );
}
