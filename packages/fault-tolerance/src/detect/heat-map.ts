/**
 * MegaScale's heat map of machines (section 5.1): each host's time in each segment of a step against
 * the median over hosts, so that the half percent of hosts that are a tenth slower show at a glance.
 */
import { TriremeError, type Seconds, median } from "@trireme/core";

export interface HeatMap {
  readonly hosts: number;
  readonly segments: readonly string[];
  /** ratio_HS: time / median of the segment over hosts; 1 is usual. H hosts, S segments. */
  readonly ratio: Float32Array;
}

/**
 * @param segments Mean time of every host in each segment, by the segment's name (forward, backward).
 * @throws TriremeError "HEAT_MAP" when segments have different numbers of hosts or a time is not above 0.
 */
export function heatMap(segments: Readonly<Record<string, ArrayLike<Seconds>>>): HeatMap {
  const names = Object.keys(segments);
  const hosts = segments[names[0] ?? ""]?.length ?? 0;
  const ratio = new Float32Array(hosts * names.length);
  for (const [s, name] of names.entries()) {
    const times = segments[name]!;
    if (times.length !== hosts) {
      throw new TriremeError("HEAT_MAP", `${name}: times of ${times.length} hosts, not ${hosts}`);
    }
    const sorted = Float64Array.from(times).sort();
    if (!(sorted[0]! > 0) || Number.isNaN(sorted.at(-1))) {
      const wrong = Array.from(times).find((time) => !(time > 0));
      throw new TriremeError("HEAT_MAP", `${name}: a time of ${wrong} s; use times above 0`);
    }
    const usual = median(sorted);
    for (let host = 0; host < hosts; host++) {
      ratio[host * names.length + s] = times[host]! / usual;
    }
  }
  return { hosts, segments: names, ratio };
}

/**
 * Hosts that are slower than usual by more than `slack` in some segment, slowest first. The default of
 * 5 % lies between even hosts (about 1 %) and the slow ones of the paper (10 %).
 */
export function slowHosts(map: HeatMap, slack = 0.05): number[] {
  const worst = new Float32Array(map.hosts);
  const width = map.segments.length;
  for (const [i, value] of map.ratio.entries()) {
    const host = Math.floor(i / width);
    worst[host] = Math.max(worst[host]!, value);
  }
  return Array.from(worst, (_, host) => host)
    .filter((host) => worst[host]! > 1 + slack)
    .toSorted((a, b) => worst[b]! - worst[a]! || a - b);
}

const shades = " .:-=+*#%@";

/** The map as text: a line for each segment, a character for each host; @ is 20 % slow or more. */
export function heatMapText(map: HeatMap): string {
  const width = Math.max(0, ...map.segments.map((name) => name.length));
  return map.segments
    .map((name, s) => {
      const cells = Array.from({ length: map.hosts }, (_, host) => {
        const slow = (map.ratio[host * map.segments.length + s]! - 1) / 0.2;
        return shades[Math.min(shades.length - 1, Math.max(0, Math.floor(slow * 9)))]!;
      });
      return `${name.padEnd(width)} |${cells.join("")}|`;
    })
    .join("\n");
}
