/**
 * How often training fails: published failures per host-day, of hosts of 8 accelerators. RSC-1's
 * figure is fitted to jobs of more than 128 GPUs; its own mean times to failure of small jobs (47.7
 * days at 8 GPUs, 7.9 h at 1,024) imply 3 to 4 times as many, so small jobs have a row of their own.
 */
export type PublishedRate =
  | "rsc-1"
  | "rsc-1-small-jobs"
  | "rsc-2"
  | "llama3-405b"
  | "bloom-176b"
  | "opt-175b"
  | "ft-hsdp";

export const failureRates: Readonly<Record<PublishedRate, number>> = {
  /** Meta RSC-1, 16k A100, jobs of more than 128 GPUs: published. */
  "rsc-1": 6.5e-3,
  /** Derived from 7.9 h of a job of 1,024 GPUs; 47.7 days at 8 GPUs gives 21.0e-3. */
  "rsc-1-small-jobs": 24 / (7.9 * 128),
  /** Meta RSC-2, 8k A100: published. */
  "rsc-2": 2.34e-3,
  /** 419 interruptions in 54 days on 2,048 hosts: derived. */
  "llama3-405b": 419 / (54 * 2048),
  /** 1.5 GPU failures a week on 48 hosts (1 to 2 are published): derived. */
  "bloom-176b": 1.5 / (7 * 48),
  /** 105 restarts in 61 days on 124 hosts: derived. */
  "opt-175b": 105 / (61 * 124),
  /** FT-HSDP, 32k GPUs: published, per server-day. */
  "ft-hsdp": 2.3e-3,
};
