/**
 * All-reduces that the switch sums (NVLS), and trees of them over hosts (NVLSTree). A buffer goes in
 * rounds: each channel of each head first sums one chunk and then spreads it. Rounds follow each other
 * at what the slower of two things allows: the bytes of a round, or the handshakes of a chunk, which
 * take as long however small it is. The second half, and each hop up and down the tree, is filled by
 * one round. Sizes of chunks: NCCL `src/enqueue.cc` and `src/transport/nvls.cc` (2.27).
 */
import { type Bytes, type BytesPerSecond, KiB, type Seconds, us } from "@trireme/core";
import type { Generation } from "./profile.ts";

/**
 * Least time between rounds: nccl-tests on 8 H100 needs 74 µs more for 32 MiB than for 16 MiB, which
 * are 4 more rounds (output in Mooncake's pull request 3484).
 */
const handshakes: Seconds = us(18.5);

/** What `nvlsTime` needs of a call. */
export interface NvlsCall {
  readonly bytes: Bytes;
  /** The tuner's latency, and its bandwidth of the buffer. */
  readonly latency: Seconds;
  readonly bandwidth: BytesPerSecond;
  readonly generation: Generation;
  readonly hosts: number;
  readonly perHost: number;
}

/** Chunks of a round: channels times heads, one head a rank of the host. */
function concurrent({ generation, perHost }: NvlsCall): number {
  return (generation === "blackwell" ? 24 : 16) * perHost;
}

/** Chunk sizes in falling order, and the rounds of the larger one below which each is taken. */
function chunks({ hosts }: NvlsCall): readonly (readonly [chunk: Bytes, rounds: number])[] {
  if (hosts === 1) {
    return [
      [KiB(128), Infinity],
      [KiB(64), 64],
      [KiB(32), 8],
      [KiB(16), 2],
    ];
  }
  return hosts < 4
    ? [
        [KiB(128), Infinity],
        [KiB(64), 4],
        [KiB(32), 1],
      ]
    : [
        [KiB(64), Infinity],
        [KiB(32), 1],
      ];
}

/** Seconds of a call without its launch; never falls with bytes, as calls just below a larger chunk do. */
export function nvlsTime(call: NvlsCall): Seconds {
  const { bytes, latency, bandwidth, hosts } = call;
  const fills = 1 + 2 * Math.log2(hosts);
  const at = concurrent(call);
  const ways = chunks(call);
  let time = 0;
  ways.forEach(([chunk], i) => {
    // Sizes with this chunk end where the larger one begins, and begin where the next smaller ends.
    const larger = ways[i - 1];
    const most = larger === undefined ? Infinity : ways[i]![1] * at * larger[0];
    const next = ways[i + 1];
    const least = next === undefined ? 0 : next[1] * at * chunk;
    if (bytes < least) return;
    const part = Math.min(bytes, most);
    const round = Math.min(part, at * chunk) / bandwidth;
    const rounds = Math.max(1, Math.ceil(part / (at * chunk)));
    const rest = Math.max(part / bandwidth - round, (rounds - 1) * handshakes);
    time = Math.max(time, latency + round + rest + fills * round);
  });
  return time;
}
