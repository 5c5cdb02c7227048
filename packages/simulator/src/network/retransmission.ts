/**
 * How a connection of NCCL over InfiniBand or RoCE takes a link that goes down. Packets that are lost
 * are sent again when a timer runs out, 4.096 µs × 2^timeout (NCCL_IB_TIMEOUT; InfiniBand Architecture
 * Specification, 9.7.6.1.3), up to a number of retries (NCCL_IB_RETRY_CNT); after that the connection
 * fails and the job with it. So a flap of a second stops traffic until the timer's next round, not
 * until the link is back, and a flap that outlasts all rounds ends the job; MegaScale (NSDI 2024,
 * §3.6) tunes both, and has NICs retransmit adaptively: from short intervals up to long ones.
 */
import { type Seconds, TriremeError } from "@trireme/core";

/** Timers of a connection. */
export interface Retransmission {
  /** Exponent of the timer, 1 to 31; NCCL's default is 20: 4.3 s. */
  readonly timeout: number;
  /** Retries before the connection fails, 0 to 7; NCCL's default is 7. */
  readonly retries: number;
  /** First interval of adaptive retransmission, doubled each time up to the timer; without, the timer at once. */
  readonly adaptiveFrom?: Seconds;
}

/** NCCL's defaults, without adaptive retransmission. */
export const ncclRetransmission: Retransmission = { timeout: 20, retries: 7 };

/** The timer of an exponent. */
export function retransmitTimer(timeout: number): Seconds {
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > 31) {
    throw new TriremeError("TIMEOUT", `timeout exponent ${timeout}: give an integer in 1..31`);
  }
  return 4.096e-6 * 2 ** timeout;
}

/**
 * When a connection that lost packets at `lost` goes on, if the link works from `up` on; undefined when
 * its retries are used up before. A connection gives up at `givesUp`.
 */
export function resumes(r: Retransmission, lost: Seconds, up: Seconds): Seconds | undefined {
  for (const at of attempts(r, lost)) if (at >= up) return at;
  return undefined;
}

/** When a connection that lost packets at `lost` fails: a timer after its last retry. */
export function givesUp(r: Retransmission, lost: Seconds): Seconds {
  let last = lost;
  for (const at of attempts(r, lost)) last = at;
  return last + retransmitTimer(r.timeout);
}

/** Times of the retries. Adaptive ones come more often, and end no earlier than those of the timer. */
function* attempts(r: Retransmission, lost: Seconds): Generator<Seconds> {
  const timer = retransmitTimer(r.timeout);
  const { retries, adaptiveFrom } = r;
  if (!Number.isInteger(retries) || retries < 0 || retries > 7) {
    throw new TriremeError("RETRIES", `${retries} retries: give an integer in 0..7`);
  }
  if (adaptiveFrom === undefined) {
    for (let k = 1; k <= retries; k++) yield lost + k * timer;
    return;
  }
  if (!(adaptiveFrom > 0)) {
    throw new TriremeError("RETRIES", `first interval ${adaptiveFrom} s: give one above 0`);
  }
  const end = lost + retries * timer;
  let interval = Math.min(adaptiveFrom, timer);
  for (let at = lost + interval; at <= end; at += interval) {
    yield at;
    interval = Math.min(2 * interval, timer);
  }
}
