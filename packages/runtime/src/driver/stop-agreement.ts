/**
 * A stop after the same step on every rank, without a collective among them. Each host freezes the
 * steps it lets its ranks begin and says how far it has let them go; the greatest of these is the
 * last step. It has begun somewhere, so it needs every rank: those behind may go on up to it, and
 * none has gone further.
 */

/** Bounds told so far, and the step once all are known. */
export interface StopAgreement {
  readonly generation: number;
  readonly bounds: ReadonlyMap<number, number>;
  /** The last step of the run; undefined until every member has told its bound. */
  readonly step?: number;
}

/** Takes a host's bound. A bound told twice counts once, and none counts after the step is fixed. */
export function takeBound(
  agreement: StopAgreement,
  members: readonly number[],
  host: number,
  bound: number,
): StopAgreement {
  if (agreement.step !== undefined || agreement.bounds.has(host) || !members.includes(host)) {
    return agreement;
  }
  const bounds = new Map(agreement.bounds).set(host, bound);
  if (members.some((member) => !bounds.has(member))) return { ...agreement, bounds };
  return { ...agreement, bounds, step: Math.max(...bounds.values()) };
}
