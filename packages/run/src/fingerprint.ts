/** A stable name for what a run computes: equal settings, equal fingerprint, on every machine. */
import { hash32 } from "@trireme/core";

/**
 * 128 bits of plain data as 32 hexadecimal digits: order of keys does not count, numbers count as
 * numbers (8 and 8.0 are one), keys that are undefined count as absent. Not cryptographic.
 */
export function fingerprint(value: unknown): string {
  const text = canonical(value);
  const lanes = [1, 2, 3, 4];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    for (let lane = 0; lane < lanes.length; lane++) lanes[lane] = hash32(lanes[lane]!, code);
  }
  return lanes.map((lane) => lane.toString(16).padStart(8, "0")).join("");
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, v]) => v !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, v]) => `${JSON.stringify(key)}:${canonical(v)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}
