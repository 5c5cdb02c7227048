/**
 * Samples of a stream that can only be read on from a cursor (lines, records of an archive): a window
 * of what was read ahead, and a snapshot now and then. Restoring starts at a snapshot and reads on to
 * where it is needed, which gives the same samples again: OVERLORD's differential checkpoint, rare
 * snapshots of data and frequent states of the planner (arXiv:2504.09844).
 */
import { TriremeError } from "@trireme/core";
import type { SampleMetadata } from "../planning/sample-costs.ts";
import type { SampleSource, SourceSnapshot } from "./sample-source.ts";

/** A sample of a stream, and where reading goes on after it. */
export interface StreamedSample<C> {
  readonly tokens: Int32Array;
  /** Where it has other parts than text. */
  readonly metadata?: SampleMetadata;
  readonly next: C;
}

/** A stream of samples. */
export interface SampleStream<C> {
  readonly fingerprint: string;
  /** Samples from a cursor to the end of an epoch; from the start without one. */
  open(cursor: C | undefined): AsyncIterable<StreamedSample<C>> | Iterable<StreamedSample<C>>;
}

interface Held<C> {
  readonly sample: StreamedSample<C>;
  readonly cursor: C | undefined;
}

/**
 * A stream as a source, from its start or from a snapshot. After the last sample comes the first again.
 * What goes wrong with a read is told to who asked, and tried again when somebody asks again.
 */
export function sequentialSamples<C>(
  stream: SampleStream<C>,
  from?: SourceSnapshot,
): SampleSource & { snapshot(): SourceSnapshot } {
  const held = new Map<number, Held<C>>();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this stream's own, from snapshot below
  let cursor = from?.cursor as C | undefined;
  let [first, end] = [from?.position ?? 0, from?.position ?? 0];
  let reading = stepsOf(stream.open(cursor));
  let emptyEpoch = cursor === undefined;
  // Reads go one after the other, as the stream does.
  let queue: Promise<unknown> = Promise.resolve();

  const readOn = async (): Promise<void> => {
    const { done, value } = await reading.next().catch((cause: unknown) => {
      // What has thrown is over, which is not the end of the epoch: it is read on from where it stood.
      reading = stepsOf(stream.open(cursor));
      throw cause;
    });
    if (done === true) {
      if (emptyEpoch)
        throw new TriremeError("SOURCE", `stream ${stream.fingerprint} has no samples`);
      cursor = undefined;
      emptyEpoch = true;
      reading = stepsOf(stream.open(undefined));
      return;
    }
    emptyEpoch = false;
    held.set(end++, { sample: value, cursor });
    cursor = value.next;
  };
  const at = (position: number): Promise<StreamedSample<C>> => {
    const found = queue.then(async () => {
      if (position < first) {
        throw new TriremeError(
          "SOURCE",
          `position ${position} of stream ${stream.fingerprint} is gone: it is read from ${first} on; restore an earlier snapshot`,
        );
      }
      while (end <= position) await readOn();
      return held.get(position)!.sample;
    });
    queue = found.catch(() => undefined);
    return found;
  };
  return {
    fingerprint: stream.fingerprint,
    samples: undefined,
    describe: async (position) => {
      const { tokens, metadata } = await at(position);
      return metadata ?? { tokens: tokens.length };
    },
    read: async (position) => (await at(position)).tokens,
    release(position) {
      for (; first < Math.min(position, end); first++) held.delete(first);
    },
    snapshot: () => ({
      position: first,
      cursor: held.has(first) ? held.get(first)!.cursor : cursor,
    }),
  };
}

async function* stepsOf<T>(items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T, void> {
  yield* items;
}
