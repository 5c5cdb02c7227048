/**
 * SI units as plain numbers: seconds, bytes, FLOP, watts, joules and their rates. Constructors turn
 * the units people write (`GB(80)`, `Gbps(400)`, `us(5)`) into them; nothing else in the project
 * knows a prefix, except the formatters in `format.ts`.
 */

/** A span of time in seconds. */
export type Seconds = number;
/** A size in bytes. */
export type Bytes = number;
/** An amount of arithmetic: one multiply and one add are two. */
export type Flops = number;
/** A bandwidth in bytes per second, always of one direction. */
export type BytesPerSecond = number;
/** A rate of arithmetic in FLOP per second. */
export type FlopsPerSecond = number;
/** Power in watts. */
export type Watts = number;
/** Energy in joules. */
export type Joules = number;

/** Decimal kilobytes to bytes. */
export const KB = (n: number): Bytes => n * 1e3;
/** Decimal megabytes to bytes. */
export const MB = (n: number): Bytes => n * 1e6;
/** Decimal gigabytes to bytes. */
export const GB = (n: number): Bytes => n * 1e9;
/** Decimal terabytes to bytes. */
export const TB = (n: number): Bytes => n * 1e12;
/** Binary kibibytes to bytes. */
export const KiB = (n: number): Bytes => n * 2 ** 10;
/** Binary mebibytes to bytes. */
export const MiB = (n: number): Bytes => n * 2 ** 20;
/** Binary gibibytes to bytes. */
export const GiB = (n: number): Bytes => n * 2 ** 30;
/** Binary tebibytes to bytes. */
export const TiB = (n: number): Bytes => n * 2 ** 40;

/** Gigabits per second, as network ports are sold, to bytes per second. */
export const Gbps = (n: number): BytesPerSecond => (n * 1e9) / 8;
/** Decimal gigabytes per second to bytes per second. */
export const GBps = (n: number): BytesPerSecond => n * 1e9;
/** Decimal terabytes per second to bytes per second. */
export const TBps = (n: number): BytesPerSecond => n * 1e12;

/** Nanoseconds to seconds. */
export const ns = (n: number): Seconds => n * 1e-9;
/** Microseconds to seconds. */
export const us = (n: number): Seconds => n * 1e-6;
/** Milliseconds to seconds. */
export const ms = (n: number): Seconds => n * 1e-3;
/** Minutes to seconds. */
export const minutes = (n: number): Seconds => n * 60;
/** Hours to seconds. */
export const hours = (n: number): Seconds => n * 3600;
/** Days to seconds. */
export const days = (n: number): Seconds => n * 86_400;

/** GFLOP/s to FLOP/s. */
export const GFLOPS = (n: number): FlopsPerSecond => n * 1e9;
/** TFLOP/s to FLOP/s. */
export const TFLOPS = (n: number): FlopsPerSecond => n * 1e12;
/** PFLOP/s to FLOP/s. */
export const PFLOPS = (n: number): FlopsPerSecond => n * 1e15;
