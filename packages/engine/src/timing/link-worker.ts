/** One of two threads that time the messages between them. */
import { parentPort, workerData } from "node:worker_threads";
import { createCommunicator } from "@trireme/collectives";
import { median } from "@trireme/core";
import type { LinkSeed } from "./link-protocol.ts";
import type { MeasuredLink } from "./measure-link.ts";
import { createRankMemory } from "../memory/rank-memory.ts";

const roundTrips = 50;
const reductions = 12;
/** Large enough that latency does not matter, small enough for the time. */
const elements = 2 ** 18;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the main thread sends nothing else
const { arena, rank } = workerData as LinkSeed;
const now = (): number => performance.now() / 1e3;
const communicator = createCommunicator({ memory: arena, rank, ranks: 2, now, deadline: 10 });
const { memory, base } = createRankMemory();
memory.grow(Math.ceil((elements * 4) / 65_536) + 1);

function roundTrip(): void {
  const data = new Float32Array(memory.buffer, base, 1);
  if (rank === 0) communicator.send(data, 1).wait();
  communicator.receive(data, 1 - rank).wait();
  if (rank === 1) communicator.send(data, 0).wait();
}

function reduce(): void {
  communicator.allReduce(new Float32Array(memory.buffer, base, elements)).wait();
}

/** Median seconds of one call, the first left out. */
function time(what: () => void, times: number): number {
  what();
  const seconds = Array.from({ length: times }, () => {
    const begin = now();
    what();
    return now() - begin;
  });
  return median(seconds);
}

communicator.barrier().wait();
const latency = time(roundTrip, roundTrips) / 2;
// Over two ranks a reduction sends all bytes once each way, in two halves that follow each other.
const transfer = time(reduce, reductions) - 2 * latency;
const bandwidth = (elements * 4) / Math.max(transfer, 1e-6);
const measured: MeasuredLink = { bandwidth, latency };
parentPort!.postMessage(measured);
