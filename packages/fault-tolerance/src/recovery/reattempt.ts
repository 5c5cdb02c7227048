/** After a software fault: restart in place, self-checks first; then the version before; then the end. */
import type { ControllerRecord } from "./record.ts";

export type Reattempt =
  /** Go on from this record, which counts so many faults without a committed step between them. */
  | { readonly ok: true; readonly record: ControllerRecord; readonly attempts: number }
  | { readonly ok: false; readonly reason: string };

/** @param restarts Faults in a row, none of them passed, that are cured by a restart alone. */
export function planReattempt(record: ControllerRecord, restarts: number): Reattempt {
  const { previous, pending, ...state } = record;
  const attempts = state.attempts + 1;
  if (attempts <= restarts) return { ok: true, record, attempts };
  // An update that waits is made now, and is another program.
  if (pending !== undefined) return { ok: true, record, attempts: 0 };
  if (previous !== undefined)
    return { ok: true, record: { ...state, version: previous }, attempts: 0 };
  const faults = `${attempts} software faults at step ${state.committed + 1}`;
  return { ok: false, reason: `crash loop: ${faults}` };
}
