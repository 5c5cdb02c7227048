/** How fast a step is, however it was found. */
import { type Seconds, formatCount, formatPercent, formatSeconds } from "@trireme/core";
import type { ResolvedRun } from "@trireme/run";
import type { Field } from "./fields.ts";
import { mfuNote } from "./mfu.ts";

interface Speed {
  readonly step: Seconds;
  /** Of all devices together. */
  readonly tokensPerSecond: number;
  readonly mfu: number;
}

/** @param measured What the times rest on, where operators were timed. */
export function speedFields(
  run: ResolvedRun,
  { step, tokensPerSecond, mfu }: Speed,
  measured: string | undefined,
): readonly Field[] {
  const each = formatCount(tokensPerSecond / run.cluster.devices);
  return [
    { label: "iteration", value: formatSeconds(step), ...(measured && { note: measured }) },
    { label: "tokens/s", value: formatCount(tokensPerSecond), note: `${each} a device` },
    { label: "MFU", value: formatPercent(mfu), note: mfuNote(run) },
  ];
}
