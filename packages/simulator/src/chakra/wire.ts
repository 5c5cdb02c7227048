/** The protobuf wire format, by the library @bufbuild/protobuf. */
import { TriremeError } from "@trireme/core";
import type * as wire from "@bufbuild/protobuf/wire";

const library: typeof wire = await import("@bufbuild/protobuf/wire").catch((cause: unknown) => {
  throw new TriremeError(
    "MISSING_PACKAGE",
    "@trireme/simulator/chakra needs the package @bufbuild/protobuf; install it with: npm install @bufbuild/protobuf@2.17.0",
    { cause },
  );
});

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
