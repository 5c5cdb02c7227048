import { createRng, days } from "@trireme/core";
import {
  type FaultSource,
  FaultStream,
  checkMatmul,
  failureRates,
  faultsUntil,
  llama3Causes,
  stopSources,
} from "@trireme/fault-tolerance";
import { defineCluster } from "@trireme/topology";

const llama = defineCluster({ host: "dgx-h100", hosts: 2048 });
const sources = stopSources(llama, llama3Causes, failureRates["llama3-405b"]);

const million = defineCluster({ host: "dgx-h100", hosts: 1_000_000 });
const wearing: FaultSource = {
  name: "wearing",
  component: "accelerator",
  law: { kind: "weibull", shape: 1.5, scale: days(1e5) },
  effect: { kind: "stop", causes: llama3Causes },
};
const drawn = 10_000;

const [m, k, n] = [512, 512, 512];
const rng = createRng(1);
const a = Float32Array.from({ length: m * k }, () => rng.normal());
const b = Float32Array.from({ length: k * n }, () => rng.normal());
const c = new Float32Array(m * n);
for (let i = 0; i < m; i++) {
  for (let l = 0; l < k; l++) {
    for (let j = 0; j < n; j++) c[i * n + j]! += a[i * k + l]! * b[l * n + j]!;
  }
}

export const benchmarks = [
  {
    id: "fault-tolerance/faults-of-54-days",
    what: "all faults of 16,384 GPUs in 54 days (about 419), drawn from the Llama 3 table",
    unit: "s",
    better: "lower",
    target: 0.01,
    time: (): void => {
      faultsUntil(llama, sources, { seed: 1, until: days(54) });
    },
  },
  {
    id: "fault-tolerance/weibull-faults",
    what: "faults drawn in a second of 8 million accelerators that wear out (no cost per accelerator)",
    unit: "faults/s",
    better: "higher",
    target: 1e5,
    amount: drawn,
    time: (): void => {
      const stream = new FaultStream(million, [wearing], { seed: 1 });
      for (let i = 0; i < drawn; i++) stream.take();
    },
  },
  {
    id: "fault-tolerance/checksum-512",
    what: "row and column checksums of a 512 x 512 x 512 float32 product",
    unit: "s",
    better: "lower",
    target: 0.02,
    time: (): void => {
      if (!checkMatmul(a, b, c, { m, k, n }).ok) throw new Error("a false alarm");
    },
  },
] as const;
