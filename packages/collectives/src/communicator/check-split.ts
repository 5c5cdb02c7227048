/** Checks the counts of a call where they are given. */
import { TriremeError } from "@trireme/core";
import { type Elements, elementType } from "./element-type.ts";
import type { Split } from "./exchanges.ts";
import type { Call } from "./operation.ts";

/**
 * Throws unless a split has a count for each of `ranks`, fits its buffer (exactly, where the parts
 * lie one after the other and this rank's own part is given), is of the type of the call, and gives
 * `rank` as many elements as its own part has.
 */
export function checkSplit(
  { operation, type }: Call,
  { rank, ranks }: { readonly rank: number; readonly ranks: number },
  whole: Elements | undefined,
  split: Split | undefined,
  part?: Elements,
): void {
  if (whole === undefined || split === undefined) {
    throw new TriremeError("COUNT", `${operation}: the root passes the whole and its split`);
  }
  const { counts, offsets } = split;
  const lists = offsets === undefined ? [counts] : [counts, offsets];
  if (lists.some((l) => l.length !== ranks || l.some((n) => !Number.isInteger(n) || n < 0))) {
    const at = offsets === undefined ? "" : ` at [${offsets.join(", ")}]`;
    throw new TriremeError(
      "COUNT",
      `${operation}: counts [${counts.join(", ")}]${at} must be ${ranks} integers of at least 0`,
    );
  }
  if (elementType(whole) !== type) {
    throw new TriremeError(
      "ELEMENT_TYPE",
      `${operation} of ${type} and ${elementType(whole)}; both buffers must be of one type`,
    );
  }
  let end = 0;
  const last = counts.reduce((most, count, r) => {
    end += count;
    return Math.max(most, offsets === undefined ? end : offsets[r]! + count);
  }, 0);
  const exact = offsets === undefined && part !== undefined;
  if (last > whole.length || (exact && last !== whole.length)) {
    throw new TriremeError(
      "COUNT",
      `${operation}: counts [${counts.join(", ")}] end at ${last}, but the buffer has ${whole.length} elements`,
    );
  }
  if (part !== undefined && part.length !== counts[rank]) {
    throw new TriremeError(
      "COUNT",
      `${operation}: rank ${rank} has ${part.length} elements, its count is ${counts[rank]}`,
    );
  }
}
