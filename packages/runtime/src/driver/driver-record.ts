/** All of a driver's state that must outlive it, and its form in a journal. */
import { TriremeError } from "@trireme/core";
import { type ControllerRecord, decodeRecord, encodeRecord } from "@trireme/fault-tolerance";
import type { Endpoint, Launch } from "./launch.ts";
import type { RunEnd } from "./message.ts";
import type { StopAgreement } from "./stop-agreement.ts";

/** What is known of a host that has joined. */
export interface HostEntry {
  readonly incarnation: string;
  readonly ranks: number;
  readonly endpoint: Endpoint;
}

/** Stored before the answers that follow from it are sent; immutable, so that a change is a new object. */
export interface DriverRecord {
  readonly hosts: ReadonlyMap<number, HostEntry>;
  /** State of the recovery controller; undefined until every member has joined. */
  readonly controller?: ControllerRecord;
  /** Launch of the newest generation that has begun to train. */
  readonly launch?: Launch;
  readonly stopRequested: boolean;
  readonly stop?: StopAgreement;
  readonly end?: RunEnd;
}

/** Form of the record; a journal of another one is refused. */
const version = 1;

/** A record as one line of JSON. */
export function encodeDriverRecord(record: DriverRecord): string {
  const { hosts, controller, stop } = record;
  return JSON.stringify({
    version,
    ...record,
    hosts: [...hosts],
    ...(controller === undefined ? {} : { controller: encodeRecord(controller) }),
    ...(stop === undefined ? {} : { stop: { ...stop, bounds: [...stop.bounds] } }),
  });
}

/** What `encodeDriverRecord` writes. */
interface Stored extends Omit<DriverRecord, "hosts" | "controller" | "stop"> {
  readonly version: unknown;
  readonly hosts: readonly (readonly [number, HostEntry])[];
  readonly controller?: string;
  readonly stop?: Omit<StopAgreement, "bounds"> & {
    readonly bounds: readonly (readonly [number, number])[];
  };
}

/**
 * A record from its JSON. Its integrity is the journal's affair (a checksum); only the version is
 * looked at here.
 * @throws TriremeError "JOURNAL" for another version.
 */
export function decodeDriverRecord(text: string): DriverRecord {
  const stored: Stored = JSON.parse(text);
  if (stored.version !== version) {
    throw new TriremeError(
      "JOURNAL",
      `the journal has records of version ${String(stored.version)}, but this driver reads version ${version}: end the run with the driver that began it`,
    );
  }
  const { version: _, hosts, controller, stop, ...rest } = stored;
  return {
    ...rest,
    hosts: new Map(hosts),
    ...(controller === undefined ? {} : { controller: decodeRecord(controller) }),
    ...(stop === undefined ? {} : { stop: { ...stop, bounds: new Map(stop.bounds) } }),
  };
}
