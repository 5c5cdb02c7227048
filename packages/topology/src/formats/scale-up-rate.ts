/** Bandwidth of one scale-up link, one direction, by generation of the accelerator. */
import { type BytesPerSecond, GBps, TriremeError } from "@trireme/core";
import type { Accelerator } from "../accelerator.ts";

/** NVLink (NVIDIA's datasheets: all links of a GPU over their number). */
const nvlink: Readonly<Record<string, number>> = {
  pascal: 20,
  volta: 25,
  ampere: 25,
  hopper: 25,
  blackwell: 50,
  "blackwell-ultra": 50,
};

/** Infinity Fabric between packages and dies (AMD's CDNA 2 and CDNA 3 white papers). */
const xgmi: Readonly<Record<string, number>> = { cdna2: 50, cdna3: 64 };

/**
 * Bandwidth of one NVLink of an accelerator. GeForce and RTX cards of Ampere have slower ones.
 * @throws TriremeError "HOST" when the architecture has none.
 */
export function nvlinkBandwidth(accelerator: Accelerator): BytesPerSecond {
  const rate = rateOf(nvlink, accelerator, "NVLink");
  // Four links of a GA102 card make 56.25 GB/s.
  const slow = accelerator.architecture === "ampere" && accelerator.scaleUp === GBps(56.25);
  return slow ? accelerator.scaleUp / 4 : rate;
}

/**
 * Bandwidth of one Infinity Fabric (xGMI) link of an accelerator.
 * @throws TriremeError "HOST" when the architecture has none.
 */
export function xgmiBandwidth(accelerator: Accelerator): BytesPerSecond {
  return rateOf(xgmi, accelerator, "Infinity Fabric");
}

function rateOf(
  rates: Readonly<Record<string, number>>,
  { name, architecture }: Accelerator,
  what: string,
): BytesPerSecond {
  const rate = rates[architecture];
  if (rate === undefined) {
    throw new TriremeError(
      "HOST",
      `${name} (${architecture}) has no ${what}, but the file shows some; is it another accelerator?`,
    );
  }
  return GBps(rate);
}
