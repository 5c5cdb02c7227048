/** A source that can only be read on, as a module of a user's that actors import. */
import { sequentialSamples } from "@trireme/dataloader";
import type { OpenSource } from "@trireme/dataloader/node";

/** Samples that this process read from streams, replays included. */
export const read = { samples: 0 };

/** `options` is a number of samples; sample i of an epoch is i + 1, i % 5 + 1 times. */
export const openSource: OpenSource = (options, _seed, snapshot) =>
  sequentialSamples<number>(
    {
      fingerprint: `stream of ${String(options)}`,
      *open(cursor = 0) {
        for (let i = cursor; i < Number(options); i++) {
          read.samples++;
          yield { tokens: new Int32Array((i % 5) + 1).fill(i + 1), next: i + 1 };
        }
      },
    },
    snapshot,
  );
