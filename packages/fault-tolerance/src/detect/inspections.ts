/**
 * ByteRobust's real-time checks (sections 4.1 and 8, table 3): what is polled on every host, how often,
 * how many failures in a row are evidence, and what follows. Sure events evict at once; the network is
 * given a second chance, for most of its alerts pass by themselves.
 */
import { TriremeError, type Seconds, minutes, nearestName } from "@trireme/core";

export type InspectionArea = "network" | "gpu" | "host";

export interface Inspection {
  readonly name: string;
  readonly area: InspectionArea;
  /** Time between polls. */
  readonly interval: Seconds;
  /** Failures in a row that make an event. */
  readonly misses: number;
  /** Evict at the first event, tolerate one within a while, or only tell. */
  readonly rule: "evict" | "tolerate" | "alert";
}

const inspect = (
  name: string,
  area: InspectionArea,
  rule: Inspection["rule"],
  misses = 1,
): Inspection => ({ name, area, rule, misses, interval: inspectionIntervals[area] });

/** Seconds between polls, by area. */
export const inspectionIntervals: Readonly<Record<InspectionArea, Seconds>> = {
  network: 30,
  gpu: 10,
  host: 2,
};

export const inspections: readonly Inspection[] = [
  inspect("NIC crash", "network", "tolerate"),
  inspect("port flap", "network", "tolerate"),
  inspect("switch unreachable", "network", "tolerate", 2),
  inspect("packet loss", "network", "tolerate"),
  inspect("GPU driver hang", "gpu", "evict"),
  inspect("GPU temperature", "gpu", "alert"),
  inspect("GPU lost", "gpu", "evict"),
  inspect("GPU memory error", "gpu", "evict"),
  inspect("PCIe degraded", "gpu", "alert"),
  inspect("kernel fault", "host", "evict"),
  inspect("disk fault", "host", "evict"),
  inspect("file system mount", "host", "evict"),
];

/** Longest time from a fault to its event: every poll of the row must fall after it. */
export function detectionTime(inspection: Inspection): Seconds {
  return inspection.interval * inspection.misses;
}

export type InspectionVerdict = "none" | "alert" | "evict";

export interface InspectorOptions {
  /** What is polled; ByteRobust's by default. */
  readonly inspections?: readonly Inspection[];
  /** Tolerated events within `window` that evict; 2 by default. */
  readonly tolerated?: number;
  /** 5 minutes by default. */
  readonly window?: Seconds;
}

/** Polls' results in, verdicts out. Memory grows with the hosts that have failed a poll of late. */
export class Inspector {
  readonly #inspections: ReadonlyMap<string, Inspection>;
  readonly #tolerated: number;
  readonly #window: Seconds;
  readonly #misses = new Map<string, number>();
  readonly #events = new Map<number, Seconds[]>();

  /** @throws TriremeError "INSPECTION" on a count or window that is not above 0. */
  constructor(options: InspectorOptions = {}) {
    const { inspections: items = inspections, tolerated = 2, window = minutes(5) } = options;
    if (!(Number.isInteger(tolerated) && tolerated >= 1 && window > 0)) {
      throw new TriremeError(
        "INSPECTION",
        `${tolerated} events within ${window} s: use a whole number from 1 up and a window above 0`,
      );
    }
    this.#inspections = new Map(items.map((each) => [each.name, each]));
    this.#tolerated = tolerated;
    this.#window = window;
  }

  /**
   * Takes the result of one poll of a host.
   * @throws TriremeError "INSPECTION" on an unknown name, with the nearest.
   */
  observe(name: string, host: number, ok: boolean, now: Seconds): InspectionVerdict {
    const item = this.#inspections.get(name);
    if (item === undefined) {
      const near = nearestName(name, this.#inspections.keys());
      throw new TriremeError(
        "INSPECTION",
        `no inspection "${name}"${near === undefined ? "" : `; did you mean "${near}"?`}`,
      );
    }
    const key = `${host} ${name}`;
    const misses = ok ? 0 : (this.#misses.get(key) ?? 0) + 1;
    if (misses === 0 || misses >= item.misses) this.#misses.delete(key);
    else this.#misses.set(key, misses);
    if (misses < item.misses) return "none";
    switch (item.rule) {
      case "evict":
        return "evict";
      case "alert":
        return "alert";
      case "tolerate": {
        const recent = (this.#events.get(host) ?? []).filter((at) => now - at <= this.#window);
        recent.push(now);
        this.#events.set(host, recent);
        return recent.length >= this.#tolerated ? "evict" : "alert";
      }
    }
  }

  /** Forgets a host: it was replaced or repaired. */
  reset(host: number): void {
    this.#events.delete(host);
    for (const { name } of this.#inspections.values()) this.#misses.delete(`${host} ${name}`);
  }
}
