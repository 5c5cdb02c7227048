/**
 * Names in a directory of checkpoints. `step-00000120` is a checkpoint; a second one of the same step
 * (a run that was resumed at it) is `step-00000120.1`, so that nothing complete is ever overwritten;
 * `.step-00000120.tmp` is one being written; `latest` holds the name of the one committed last.
 */

/** A checkpoint's step and which attempt at that step it is. */
export interface CheckpointName {
  readonly name: string;
  readonly step: number;
  readonly attempt: number;
}

/** The file beside the checkpoints that names the one committed last: for people and other tools. */
export const latestName = "latest";

/** The file in a checkpoint that lists the others: a checkpoint without it is not complete. */
export const markerName = "COMPLETE";

/** The name of a checkpoint. Steps are padded to eight digits, so that names sort by step up to 10⁸. */
export function checkpointName(step: number, attempt: number): string {
  const stem = `step-${String(step).padStart(8, "0")}`;
  return attempt === 0 ? stem : `${stem}.${attempt}`;
}

/** What a name says; undefined where it is not a checkpoint's. */
export function parseCheckpointName(name: string): CheckpointName | undefined {
  const [, step, attempt] = /^step-(\d{8,16})(?:\.([1-9]\d{0,8}))?$/.exec(name) ?? [];
  if (step === undefined) return undefined;
  const parsed = { name, step: Number(step), attempt: Number(attempt ?? 0) };
  // Not a name of ours unless we would write it so: no second spelling of one step.
  return checkpointName(parsed.step, parsed.attempt) === name ? parsed : undefined;
}

/** The name under which a checkpoint is written before it is renamed to its own. */
export function temporaryName(name: string): string {
  return `.${name}.tmp`;
}

/** Whether a name is that of an unfinished write. */
export function isTemporaryName(name: string): boolean {
  const [, inner] = /^\.(.+)\.tmp$/.exec(name) ?? [];
  return inner !== undefined && (inner === latestName || parseCheckpointName(inner) !== undefined);
}

/** Newest first: by step, then by attempt. */
export function newestFirst(a: CheckpointName, b: CheckpointName): number {
  return b.step - a.step || b.attempt - a.attempt;
}
