/**
 * The part of Perfetto's trace schema that timelines use, with the names and field numbers of
 * protos/perfetto/trace/trace.proto, trace_packet.proto and track_event/*.proto of google/perfetto.
 * Readers of the whole schema read the same bytes; `oneof`s are left out, which the wire does not know.
 */
import { TriremeError, missingPeer } from "@trireme/core";
import type * as protobuf from "@bufbuild/protobuf";
import type * as wkt from "@bufbuild/protobuf/wkt";

type Scalar = "uint64" | "uint32" | "int32" | "fixed64" | "double" | "string";

/** Field: number, type (a scalar, an enum or a message), and whether it repeats. */
type Field = readonly [number: number, type: string, repeated?: "repeated"];

const messages: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  Trace: { packet: [1, "TracePacket", "repeated"] },
  TracePacket: {
    timestamp: [8, "uint64"],
    trusted_packet_sequence_id: [10, "uint32"],
    track_event: [11, "TrackEvent"],
    track_descriptor: [60, "TrackDescriptor"],
  },
  TrackEvent: {
    debug_annotations: [4, "DebugAnnotation", "repeated"],
    type: [9, "TrackEvent.Type"],
    track_uuid: [11, "uint64"],
    categories: [22, "string", "repeated"],
    name: [23, "string"],
    double_counter_value: [44, "double"],
    flow_ids: [47, "fixed64", "repeated"],
    terminating_flow_ids: [48, "fixed64", "repeated"],
  },
  TrackDescriptor: {
    uuid: [1, "uint64"],
    name: [2, "string"],
    process: [3, "ProcessDescriptor"],
    parent_uuid: [5, "uint64"],
    counter: [8, "CounterDescriptor"],
  },
  ProcessDescriptor: { pid: [1, "int32"], process_name: [6, "string"] },
  CounterDescriptor: { unit_name: [6, "string"] },
  DebugAnnotation: {
    uint_value: [3, "uint64"],
    double_value: [5, "double"],
    name: [10, "string"],
  },
};

/** Types of track events. */
export const eventType = { begin: 1, end: 2, counter: 4 } as const;

const scalars: Readonly<Record<Scalar, number>> = {
  double: 1,
  uint64: 4,
  int32: 5,
  fixed64: 6,
  string: 9,
  uint32: 13,
};

/** The protobuf library and the descriptor of each message. */
export interface Schema {
  readonly library: typeof protobuf;
  readonly message: (name: string) => protobuf.DescMessage;
}

/**
 * Loads the library and builds the descriptors.
 * @throws TriremeError `PEER` with the command that installs the library.
 */
export async function loadSchema(): Promise<Schema> {
  const [library, types] = await load();
  const registry = library.createFileRegistry(fileDescriptor(library, types), () => undefined);
  return {
    library,
    message(name) {
      const found = registry.getMessage(`perfetto.protos.${name}`);
      if (found === undefined)
        throw new TriremeError("SCHEMA", `the schema has no message ${name}`);
      return found;
    },
  };
}

async function load(): Promise<[typeof protobuf, typeof wkt]> {
  return Promise.all([import("@bufbuild/protobuf"), import("@bufbuild/protobuf/wkt")]).catch(
    missingPeer("@trireme/timeline/perfetto", "@bufbuild/protobuf", "2.17.0"),
  );
}

function fileDescriptor(library: typeof protobuf, types: typeof wkt): wkt.FileDescriptorProto {
  const { FieldDescriptorProto_Label: label, FieldDescriptorProto_Type: kind } = types;
  return library.create(types.FileDescriptorProtoSchema, {
    name: "perfetto_trace.proto",
    package: "perfetto.protos",
    syntax: "proto2",
    messageType: Object.entries(messages).map(([name, fields]) => ({
      name,
      field: Object.entries(fields).map(([field, [number, type, repeated]]) => {
        const shape = {
          name: field,
          jsonName: field.replaceAll(/_[a-z]/g, (letter) => letter.slice(1).toUpperCase()),
          number,
          label: repeated === undefined ? label.OPTIONAL : label.REPEATED,
        };
        if (isScalar(type)) return Object.assign(shape, { type: scalars[type] });
        return Object.assign(shape, {
          type: type.includes(".") ? kind.ENUM : kind.MESSAGE,
          typeName: `.perfetto.protos.${type}`,
        });
      }),
      enumType: name === "TrackEvent" ? [eventTypes] : [],
    })),
  });
}

/** TrackEvent.Type. */
const eventTypes = {
  name: "Type",
  value: ["UNSPECIFIED", "SLICE_BEGIN", "SLICE_END", "INSTANT", "COUNTER"].map((value, number) => ({
    name: `TYPE_${value}`,
    number,
  })),
};

function isScalar(type: string): type is Scalar {
  return Object.hasOwn(scalars, type);
}
