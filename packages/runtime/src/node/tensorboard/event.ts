/**
 * TensorBoard's `Event` message, of tensorboard/compat/proto/event.proto and summary.proto: the few fields
 * that scalars need.
 */
import { missingPeer } from "@trireme/core";
import type { Seconds } from "@trireme/core";

const { BinaryWriter, WireType } = await import("@bufbuild/protobuf/wire").catch(
  missingPeer("@trireme/runtime/tensorboard", "@bufbuild/protobuf", "2.17.0"),
);

/** Scalars of one step. */
export interface ScalarEvent {
  /** Since 1970. */
  readonly wallTime: Seconds;
  readonly step: number;
  readonly scalars: readonly { readonly tag: string; readonly value: number }[];
}

/** Field numbers. */
const event = { wallTime: 1, step: 2, fileVersion: 3, summary: 5 } as const;
const summary = { value: 1 } as const;
const value = { tag: 1, simpleValue: 2 } as const;

/** The event that each file begins with. */
export function encodeFileVersion(wallTime: Seconds): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(event.wallTime, WireType.Bit64).double(wallTime);
  writer.tag(event.fileVersion, WireType.LengthDelimited).string("brain.Event:2");
  return writer.finish();
}

/** An event of scalars, which are 32-bit numbers in this format. */
export function encodeEvent({ wallTime, step, scalars }: ScalarEvent): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(event.wallTime, WireType.Bit64).double(wallTime);
  writer.tag(event.step, WireType.Varint).int64(step);
  writer.tag(event.summary, WireType.LengthDelimited).fork();
  for (const scalar of scalars) {
    writer.tag(summary.value, WireType.LengthDelimited).fork();
    writer.tag(value.tag, WireType.LengthDelimited).string(scalar.tag);
    writer.tag(value.simpleValue, WireType.Bit32).float(Math.fround(scalar.value));
    writer.join();
  }
  writer.join();
  return writer.finish();
}
