/**
 * An actor that holds source loaders: each source's state once, however many ranks read it. It tells the
 * planner about samples and packs those that are asked for.
 */
import { TriremeError } from "@trireme/core";
import type { SampleMetadata } from "../../planning/sample-costs.ts";
import type { SampleSource, SourceSnapshot } from "../../sources/sample-source.ts";
import type { Handler } from "./handler.ts";
import { type SourceSpec, openSource } from "./open-source.ts";
import { type Parcel, type ParcelItems, packParcel } from "./parcel.ts";

/** What a host of source loaders is started with. */
export interface SourceRole {
  readonly role: "sources";
  readonly sources: readonly SourceToOpen[];
  /** Where parcels go as files; undefined for shared memory. */
  readonly directory: string | undefined;
}

/** A source, and where to begin. */
export interface SourceToOpen {
  /** Its number in the mixture. */
  readonly source: number;
  readonly spec: SourceSpec;
  readonly seed: number;
  readonly snapshot?: SourceSnapshot;
}

/** What a host tells of a source that is open. */
export interface OpenedSource {
  readonly source: number;
  readonly fingerprint: string;
  readonly samples: number | undefined;
  /** Whether it can only be read on, from a snapshot. */
  readonly sequential: boolean;
}

/** What is asked of a host. Samples are lists of [source, position]. */
export type SourceMessage =
  | { readonly kind: "opened" }
  | { readonly kind: "open"; readonly sources: readonly SourceToOpen[] }
  | { readonly kind: "close"; readonly sources: readonly number[] }
  | { readonly kind: "describe"; readonly sources: Int32Array; readonly positions: Float64Array }
  | {
      readonly kind: "read";
      readonly samples: Int32Array;
      readonly sources: Int32Array;
      readonly positions: Float64Array;
    }
  | { readonly kind: "release"; readonly sources: Int32Array; readonly positions: Float64Array }
  | { readonly kind: "snapshot" };

/** Its answers, by question. */
export interface SourceAnswers {
  readonly opened: readonly OpenedSource[];
  readonly open: readonly OpenedSource[];
  readonly close: undefined;
  readonly describe: readonly SampleMetadata[];
  readonly read: Parcel;
  readonly release: undefined;
  readonly snapshot: readonly { readonly source: number; readonly snapshot: SourceSnapshot }[];
}

/** Opens the sources of a role. */
export async function openSources(role: SourceRole): Promise<Handler> {
  const open = new Map<number, SampleSource & { close?(): void }>();
  const add = async (sources: readonly SourceToOpen[]): Promise<OpenedSource[]> => {
    for (const { source, spec, seed, snapshot } of sources) {
      if (!open.has(source)) open.set(source, await openSource(spec, seed, snapshot));
    }
    return sources.map(({ source }) => {
      const opened = at(source);
      const { fingerprint, samples } = opened;
      return { source, fingerprint, samples, sequential: "snapshot" in opened };
    });
  };
  const at = (source: number): SampleSource => {
    const found = open.get(source);
    if (found === undefined)
      throw new TriremeError("SOURCE", `source ${source} is not open on this host`);
    return found;
  };
  try {
    await add(role.sources);
  } catch (cause) {
    open.forEach((source) => source.close?.());
    throw cause;
  }
  const answer = async (message: SourceMessage): Promise<SourceAnswers[SourceMessage["kind"]]> => {
    switch (message.kind) {
      case "opened":
        return add(role.sources);
      case "open":
        return add(message.sources);
      case "close":
        for (const source of message.sources) {
          open.get(source)?.close?.();
          open.delete(source);
        }
        return undefined;
      case "describe": {
        const metadata: SampleMetadata[] = [];
        for (let i = 0; i < message.sources.length; i++)
          metadata.push(await at(message.sources[i]!).describe(message.positions[i]!));
        return metadata;
      }
      case "read": {
        const items: ParcelItems[number][] = [];
        for (let i = 0; i < message.sources.length; i++) {
          const tokens = await at(message.sources[i]!).read(message.positions[i]!);
          items.push([message.samples[i]!, tokens]);
        }
        return packParcel(items, role.directory);
      }
      case "release":
        message.sources.forEach((source, i) => open.get(source)?.release?.(message.positions[i]!));
        return undefined;
      case "snapshot":
        return [...open].flatMap(([source, held]) => {
          const snapshot = held.snapshot?.();
          return snapshot === undefined ? [] : [{ source, snapshot }];
        });
    }
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the host sends nothing else
  return Object.assign((message: unknown) => answer(message as SourceMessage), {
    close: () => open.forEach((source) => source.close?.()),
  });
}
