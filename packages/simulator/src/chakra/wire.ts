/** The protobuf wire format, by the library @bufbuild/protobuf. */
import { missingPeer } from "@trireme/core";
import type * as wire from "@bufbuild/protobuf/wire";

const library: typeof wire = await import("@bufbuild/protobuf/wire").catch(
  missingPeer("@trireme/simulator/chakra", "@bufbuild/protobuf", "2.17.0"),
);

/** Writes one message. */
export type Writer = wire.BinaryWriter;
/** Reads one message. */
export type Reader = wire.BinaryReader;

/** An empty message to be written. */
export function writer(): Writer {
  return new library.BinaryWriter();
}

/** A message to be read. */
export function reader(bytes: Uint8Array): Reader {
  return new library.BinaryReader(bytes);
}

/** Wire types. */
export const wireType: typeof wire.WireType = library.WireType;
