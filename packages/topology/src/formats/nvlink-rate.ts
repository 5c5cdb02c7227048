import { type BytesPerSecond, GBps, TriremeError } from "@trireme/core";
import type { Accelerator } from "../accelerator.ts";

/** One NVLink, one direction, by generation of the GPU (NVIDIA's datasheets). */
const rates: Readonly<Record<string, number>> = {
  pascal: 20,
  volta: 25,
  ampere: 25,
  hopper: 25,
  blackwell: 50,
  "blackwell-ultra": 50,
};

/**
 * Bandwidth of one NVLink of an accelerator. GeForce and RTX cards of Ampere have slower ones.
 * @throws TriremeError "HOST" when the architecture has none.
 */
export function nvlinkBandwidth(accelerator: Accelerator): BytesPerSecond {
  const rate = rates[accelerator.architecture];
  if (rate === undefined) {
    throw new TriremeError(
      "HOST",
      `${accelerator.name} (${accelerator.architecture}) has no NVLink, but the file shows some; is it another accelerator?`,
    );
  }
  // Four links of a GA102 card make 56.25 GB/s.
  const slow = accelerator.architecture === "ampere" && accelerator.scaleUp === GBps(56.25);
  return slow ? accelerator.scaleUp / 4 : GBps(rate);
}
