/**
 * What a host thread spends on a call before the devices run: NCCL prepares the work of each channel and
 * launches a kernel. A thread that drives several devices (`nccl-tests -g`) does so for one after the other,
 * and up to some MiB that takes longer than the call itself.
 */
import { type Bytes, KiB, type Seconds, us } from "@trireme/core";
import type { NcclAlgorithm, NcclProtocol } from "./profile.ts";

/**
 * A kernel's launch and the work of one channel. nccl-tests on 8 A100 in one thread: 4.2 µs a device with one
 * channel (nccl-tests issue 123, the same from 4 to 8 devices), and by size what 5.25 + 0.3 per channel say (Bekman:
 * Machine Learning Engineering, network, 32 KiB to 4 MiB). The launch is the mean of the two hosts'.
 */
const kernelLaunch: Seconds = us(4.6);
const channelWork: Seconds = us(0.3);

/** Bytes below which one channel less is used: threads of a channel times bytes a thread (`enqueue.cc`, `tuning.cc`). */
function bytesPerChannel(algorithm: NcclAlgorithm, protocol: NcclProtocol, ranks: number): Bytes {
  switch (protocol) {
    case "ll":
      return 512 * 8 * (algorithm === "ring" ? ranks : 1);
    case "ll128":
      return 640 * 8;
    case "simple":
      return KiB(32);
  }
}

/** What `hostTime` needs of a call. */
export interface HostCall {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: NcclProtocol;
  readonly bytes: Bytes;
  readonly ranks: number;
  /** Channels of the topology search; NCCL runs twice as many, 32 at most. */
  readonly channels: number;
  /** Devices that one thread drives. */
  readonly devices: number;
}

/** Seconds a host thread takes to launch a call on its devices. */
export function hostTime(call: HostCall): Seconds {
  const { algorithm, protocol, bytes, ranks, channels, devices } = call;
  const most = Math.min(32, 2 * channels);
  const used = Math.floor(bytes / bytesPerChannel(algorithm, protocol, ranks));
  return devices * (kernelLaunch + Math.min(most, Math.max(1, used)) * channelWork);
}
