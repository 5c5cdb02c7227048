/** Sources opened by name: Megatron files, or what a module of the user's makes. */
import { TriremeError } from "@trireme/core";
import {
  type SampleSource,
  type SourceSnapshot,
  documentSamples,
} from "../../sources/sample-source.ts";
import { openMegatronFiles } from "../megatron-files.ts";

/** A source as plain data, so that it can be opened on any thread or host. */
export type SourceSpec = { readonly name: string } & (
  | {
      /** `<prefix>.bin` and `<prefix>.idx`; a sample is a document. */
      readonly prefix: string;
    }
  | {
      /** URL of an ES module that exports `openSource(options, seed, snapshot)`: an `OpenSource`. */
      readonly module: string;
      /** Plain data for it. */
      readonly options?: unknown;
    }
);

/** What a module of the user's exports as `openSource`. */
export type OpenSource = (
  options: unknown,
  seed: number,
  snapshot: SourceSnapshot | undefined,
) => OpenSourceResult | Promise<OpenSourceResult>;

/** A source, and how its files are closed. */
export type OpenSourceResult = SampleSource & { close?(): void };

/** Opens a source. @throws TriremeError "SOURCE" where a module has no `openSource`. */
export async function openSource(
  spec: SourceSpec,
  seed: number,
  snapshot?: SourceSnapshot,
): Promise<OpenSourceResult> {
  if ("prefix" in spec) {
    // The index is let go of: a sample source needs the ends of its documents only.
    const { index, source, ...file } = await openMegatronFiles(spec.prefix);
    const { lengths, documents } = index;
    try {
      return {
        ...documentSamples(source, endsOf(lengths, documents), seed),
        close: () => file.close(),
      };
    } catch (cause) {
      file.close();
      throw cause;
    }
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked on the next line
  const { openSource: open } = (await import(spec.module)) as { openSource?: OpenSource };
  if (typeof open !== "function") {
    throw new TriremeError(
      "SOURCE",
      `source ${spec.name}: ${spec.module} exports no function openSource`,
    );
  }
  return open(spec.options, seed, snapshot);
}

/** Where each document ends, in tokens. */
function endsOf(lengths: Int32Array, documents: Float64Array): Float64Array {
  const ends = new Float64Array(documents.length - 1);
  let end = 0;
  for (let d = 0, s = 0; d < ends.length; d++) {
    for (; s < documents[d + 1]!; s++) end += lengths[s]!;
    ends[d] = end;
  }
  return ends;
}
