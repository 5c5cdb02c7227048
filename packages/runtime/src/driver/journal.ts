/** Where a driver keeps its record, and how it knows that it alone is the driver. */
import type { DriverRecord } from "./driver-record.ts";

/** A place for the record of one run. */
export interface Journal {
  /**
   * Waits until this process leads: at once, or when the leader before it is gone. A standby driver
   * is one that waits here.
   * @param signal Gives up waiting: the promise rejects with its reason.
   */
  lead(signal?: AbortSignal): Promise<Leadership>;
}

/** The right to write, for one term. */
export interface Leadership {
  /** Greater than that of every leader before. */
  readonly term: number;
  /** The record as the last leader left it; undefined for a new run. */
  readonly record: DriverRecord | undefined;
  /**
   * Makes a record durable.
   * @throws TriremeError "JOURNAL" when it is not known to be, or this process no longer leads: the
   * driver must then step down and send nothing.
   */
  append(record: DriverRecord): Promise<void>;
  /** Aborted, with the reason, when leadership is lost before it is given up. */
  readonly lost: AbortSignal;
  /** Gives leadership up. */
  release(): Promise<void>;
}
