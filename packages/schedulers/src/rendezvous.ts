/**
 * Whether a lowered schedule runs on a transport without buffers, where a send waits until the other
 * rank stands at its receive (rendezvous; NCCL in the worst case). `lower` with `receives: "early"`
 * gives such orders.
 */
import { kindCode } from "./action.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";

/**
 * Runs the rows with sends and receives that wait for each other. Gives the action of each rank that
 * cannot go on (the row's end where all ran); linear in the number of actions.
 */
export function rendezvousPositions(s: Schedule): Int32Array {
  const { kind, stage, microbatch, offsets, stageRank } = s;
  const chain = stagesPerDirection(s);
  const positions = offsets.slice(0, s.ranks);
  const queue = [...positions.keys()];
  /** The rank at the other end of a send or receive; −1 for other actions and past the row's end. */
  const peer = (r: number): number => {
    const i = positions[r]!;
    if (i >= offsets[r + 1]!) return -1;
    const up = kind[i] === kindCode.SEND_F || kind[i] === kindCode.RECV_B;
    if (kind[i]! < kindCode.SEND_F) return -1;
    const other = stage[i]! + (up ? 1 : -1);
    return other >= 0 && Math.floor(other / chain) === Math.floor(stage[i]! / chain)
      ? (stageRank[other] ?? -1)
      : -1;
  };
  const meets = (a: number, b: number): boolean => {
    const [send, receive] =
      kind[a] === kindCode.SEND_F || kind[a] === kindCode.SEND_B ? [a, b] : [b, a];
    const step = kind[send] === kindCode.SEND_F ? 1 : -1;
    return (
      kind[receive] === kind[send]! + 1 &&
      microbatch[receive] === microbatch[send] &&
      stage[receive] === stage[send]! + step
    );
  };
  for (let r = queue.pop(); r !== undefined; r = queue.pop()) {
    while (positions[r]! < offsets[r + 1]!) {
      const q = peer(r);
      if (kind[positions[r]!]! < kindCode.SEND_F) {
        positions[r]!++;
      } else if (q >= 0 && peer(q) === r && meets(positions[r]!, positions[q]!)) {
        positions[r]!++;
        positions[q]!++;
        queue.push(q);
      } else {
        break;
      }
    }
  }
  return positions;
}
