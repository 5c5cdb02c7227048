/** Names that every object has are no settings of a table. */
import {
  fromDeepSpeed,
  fromMegatron,
  fromMegatronBridge,
  fromNemo,
  fromTorchtitan,
} from "@trireme/run/formats";
import { expect, it } from "vitest";

it.each(["constructor", "toString", "hasOwnProperty"])("%s is refused as any other", (name) => {
  const pipeline = { pipeline_parallel_degree: 2, pipeline_parallel_schedule: name };
  const read = [
    [fromTorchtitan({ parallelism: pipeline }), "parallelism.pipeline_parallel_schedule"],
    [fromDeepSpeed({ scheduler: { type: name } }), "scheduler.type"],
    [fromMegatronBridge({ mixed_precision: name }), "mixed_precision"],
    [fromNemo({ trainer: { precision: name } }), "trainer.precision"],
    [fromMegatron(["--lr-decay-style", name]), "--lr-decay-style"],
  ] as const;
  for (const [{ unsupported }, option] of read) {
    expect(unsupported).toContainEqual(expect.objectContaining({ option, value: name }));
  }
});
