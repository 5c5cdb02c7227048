import type { BytesPerSecond } from "@trireme/core";

/**
 * Bandwidth of a PCIe link, one direction, from what sysfs says: "16.0 GT/s PCIe" and a width. The
 * encoding is 8b/10b up to 5 GT/s and 128b/130b above. Where both are empty or unknown it is
 * PCIe 3.0 x16; undefined when they are something else.
 */
export function pcieBandwidth(speed: string, width: string): BytesPerSecond | undefined {
  const unknown = speed === "" || speed === "Unknown" || speed === "Unknown speed";
  const rate = unknown ? 8 : Number(/^(\d+(?:\.\d+)?) GT\/s(?: PCIe)?$/.exec(speed)?.[1]);
  const lanes = width === "" || width === "0" ? 16 : Number(/^\d+$/.exec(width)?.[0]);
  if (!(rate > 0 && lanes > 0)) return undefined;
  return ((rate * 1e9) / 8) * (rate <= 5 ? 8 / 10 : 128 / 130) * lanes;
}
