/**
 * Times of Chrome traces. The format has microseconds as decimal numbers, which readers hold as
 * floating point, subtract from each other and add durations to; neighbours that touch then seem to
 * overlap by the last bit, and viewers tear them apart. Multiples of 1/1024 µs suffer none of that:
 * their sums and differences are exact. So a nanosecond is written as the next such multiple, from
 * which readers that cut to nanoseconds get it back.
 */
import type { Seconds } from "@trireme/core";

/** Ticks in a microsecond; 128 ticks are 125 ns. */
export const ticksPerMicrosecond = 1024;

/** The first tick at or after a time rounded to nanoseconds. */
export function ticks(time: Seconds): number {
  const nanoseconds = Math.round(time * 1e9);
  // Split, so that every product is a small integer.
  const whole = Math.floor(nanoseconds / 125);
  return whole * 128 + Math.ceil(((nanoseconds - whole * 125) * 128) / 125);
}

/** The nanosecond in which a tick lies, as seconds: the inverse of `ticks`. */
export function tickTime(tick: number): Seconds {
  const whole = Math.floor(tick / 128);
  return (whole * 125 + Math.floor(((tick - whole * 128) * 125) / 128)) / 1e9;
}
