/**
 * The weights of one stage on one rank, in buckets: tensors that the tensor-parallel ranks share
 * out, tensors they all hold, experts, and the table of a tied head, whose two copies are cut alike.
 */
import type { Communicator, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Adapter } from "@trireme/workload";
import { isAdapter } from "../parameters/adapters.ts";
import type { BucketOptions } from "./bucket-options.ts";
import { Bucket } from "./bucket.ts";
import { type ParameterSpec, tiedTable } from "../parameters/parameter.ts";
import { PackedBucket } from "../packed/packed-bucket.ts";
import { type PackedBase, packedBase } from "../packed/packed-matrix.ts";
import type { Pool } from "../memory/pool.ts";
import { StageSections, type StageSectionsOptions } from "./stage-sections.ts";
import { StagedSums, type StagedSumsOptions } from "../staged/staged-sums.ts";
import type { Parameter } from "../tape/tape.ts";

/** What the weights of a stage are made of. */
export interface StageWeightsOptions extends Pick<
  BucketOptions,
  | "narrow"
  | "replicas"
  | "zero"
  | "seed"
  | "kernels"
  | "gradientBytes"
  | "reducedBytes"
  | "wholeSums"
  | "host"
> {
  readonly pool: Pool;
  readonly specs: readonly ParameterSpec[];
  /** The ranks that hold the same experts. */
  readonly expertReplicas: Communicator;
  /** The ranks that hold any part of the stage, and of the same experts. */
  readonly peers: Communicator;
  readonly expertPeers: Communicator;
  /** The ranks that share out each of these experts; undefined when there is one. */
  readonly expertSplit?: Communicator | undefined;
  /** The tensor-parallel ranks; undefined when there is one. */
  readonly tensor: Communicator | undefined;
  /** Whether they see different tokens between products, so that gradients of shared tensors add up. */
  readonly sequenceParallel: boolean;
  /**
   * Where weights or gradients are shared out by sections of the stage: how the names of each section's
   * tensors begin, and what sections need.
   */
  readonly sections?:
    | (Omit<StageSectionsOptions, "sections"> & { readonly names: readonly (readonly string[])[] })
    | undefined;
  /** How frozen matrices of layers are kept; default in full. */
  readonly base?: Adapter["base"] | undefined;
  /** Whether the rank is the first of those that share out each of its routed experts. */
  readonly isFirstOfExpert: boolean;
  /** Whether the table here is the copy of a tied head, which is neither counted nor stored. */
  readonly tableIsCopy: boolean;
  /** Where pipelines differ: what is summed with whom, and whether another pipeline speaks for all. */
  readonly staged?:
    | (Pick<StagedSumsOptions, "sums" | "groupOf"> & { readonly isCopy: boolean })
    | undefined;
}

export class StageWeights {
  /** What is trained. */
  readonly buckets: readonly Bucket[];
  /** What is frozen beside it. */
  readonly frozen: readonly Bucket[];
  /** Of it, what is kept in fewer bits. */
  readonly packed: readonly PackedBucket[];
  /** What is kept from step to step, by other rules than a gradient. */
  readonly states: readonly Bucket[];
  /** The bucket of the embedding table, where the stage has it. */
  readonly table: Bucket | undefined;
  /** The stage by its sections, where they are shared out. */
  readonly sections: StageSections | undefined;
  readonly #byName = new Map<string, Parameter>();
  readonly #staged: StagedSums | undefined;
  #gathering: Work[] = [];

  constructor(options: StageWeightsOptions) {
    const { tensor, peers, expertReplicas, expertPeers, zero, sections, staged } = options;
    const partial: Bucket[] = [];
    const isFirst = (tensor?.rank ?? 0) === 0;
    const kinds: Record<BucketKind, Partial<BucketOptions>> = {
      table: { speaks: !options.tableIsCopy, slices: tensor },
      split: { slices: tensor },
      shared: { partial: options.sequenceParallel ? tensor : undefined, speaks: isFirst },
      summed: { partial: tensor, speaks: isFirst },
      expert: { replicas: expertReplicas, slices: options.expertSplit },
      state: { replicas: peers },
      "expert-state": { replicas: expertPeers },
    };
    const make = (specs: readonly ParameterSpec[], more: Partial<BucketOptions>): Bucket[] =>
      groupSpecs(specs, sections !== undefined).map(([kind, some]) => {
        const common = { ...options, narrow: false, partial: undefined, speaks: true };
        const asked = { ...common, specs: some, ...kinds[kind], ...more };
        if (staged === undefined) return new Bucket(asked);
        const bucket = new Bucket({
          ...asked,
          partial: undefined,
          speaks: asked.speaks && !staged.isCopy,
        });
        if (asked.partial !== undefined) partial.push(bucket);
        return bucket;
      });
    const states = options.specs.filter(isState);
    const { base = "full", narrow = false } = options;
    const baseOf = (spec: ParameterSpec): PackedBase | undefined =>
      isState(spec) ? undefined : packedBase(spec, base, narrow);
    const bases = new Set(options.specs.flatMap((spec) => baseOf(spec) ?? []));
    const weights = options.specs.filter((spec) => !isState(spec) && baseOf(spec) === undefined);
    this.packed = [...bases].flatMap((kept) =>
      groupSpecs(
        options.specs.filter((spec) => baseOf(spec) === kept),
        sections !== undefined,
      ).map(([kind, specs]) => {
        const ofExpert = kind === "expert";
        const replicas = ofExpert ? expertReplicas : options.replicas;
        const stores = ofExpert ? options.isFirstOfExpert : isFirst;
        const isCopy = kind === "table" && options.tableIsCopy;
        return new PackedBucket({
          ...options,
          specs,
          base: kept,
          replicas,
          isFirst: stores,
          isCopy,
        });
      }),
    );
    const inTraining = weights.filter(({ frozen }) => frozen !== true);
    const isNarrow = ({ name, dims }: ParameterSpec): boolean =>
      options.narrow === true && dims.length === 2 && !isAdapter(name);
    const trained = [
      ...make(inTraining.filter(isNarrow), { narrow: true }),
      ...make(
        inTraining.filter((spec) => !isNarrow(spec)),
        {},
      ),
    ];
    this.buckets = trained;
    this.frozen = make(
      weights.filter(({ frozen }) => frozen === true),
      { frozen: true, zero: zero === 3 ? 3 : 0, partial: undefined },
    );
    this.states = make(states, { frozen: true, zero: 0 });
    this.table = trained.find(({ parameters }) => parameters[0]?.name === tiedTable);
    this.#staged = staged && new StagedSums({ ...staged, ...options }, trained, partial, tensor);
    this.sections =
      sections &&
      new StageSections({
        ...sections,
        sections: sections.names.map((units) =>
          this.gathered.filter(({ parameters }) => units.includes(unitOf(parameters[0]!.name))),
        ),
      });
    for (const { parameters } of [...this.gathered, ...this.states]) {
      for (const parameter of parameters) this.#byName.set(parameter.name, parameter);
    }
  }

  /** The parameter by its name; its value may be read while the stage is not sharded. */
  get(name: string): Parameter {
    const parameter = this.#byName.get(name);
    if (parameter === undefined) throw new Error(`no parameter ${name} in this stage`);
    return parameter;
  }

  /** Starts to gather sharded values, of the whole stage. */
  unshard(): readonly Work[] {
    this.sections?.leave();
    this.sections?.pin(true);
    this.#gathering = this.gathered.flatMap((bucket) => bucket.unshard() ?? []);
    return this.#gathering;
  }

  /** Waits until the values may be read. */
  ready(): void {
    for (const work of this.#gathering) work.wait();
    this.#gathering = [];
  }

  /** Frees values that are sharded outside of use. */
  reshard(): void {
    this.ready();
    this.sections?.leave();
    this.sections?.pin(false);
    for (const bucket of this.gathered) bucket.reshard();
  }

  /** Makes room for the gradients of a backward. */
  openGradients(): void {
    for (const bucket of this.buckets) bucket.gradients.open();
  }

  /** Starts to sum the gradients over the replicas. */
  reduce(): readonly Work[] {
    if (this.#staged !== undefined) return this.#staged.reduce();
    return this.buckets.map((bucket) => bucket.gradients.reduce());
  }

  /** Bytes that this rank gives to the sums of `reduce`. */
  get reducedBytes(): Bytes {
    if (this.#staged !== undefined) return this.#staged.bytes;
    return this.buckets.reduce((sum, { gradients }) => sum + gradients.reducedBytes, 0);
  }

  /** What is sharded outside of use. */
  get gathered(): readonly (Bucket | PackedBucket)[] {
    return [...this.buckets, ...this.frozen, ...this.packed];
  }
}

type BucketKind = "table" | "split" | "shared" | NonNullable<ParameterSpec["role"]>;

/** Kinds in the order of their buckets. */
const order: readonly BucketKind[] = [
  "table",
  "split",
  "shared",
  "summed",
  "expert",
  "state",
  "expert-state",
];

function isState({ role }: ParameterSpec): boolean {
  return role === "state" || role === "expert-state";
}

function kindOf({ name, role, slice }: ParameterSpec): BucketKind {
  if (name === tiedTable) return "table";
  return role ?? (slice === undefined ? "shared" : "split");
}

/** By kind, and by unit of the model where units are apart. */
function groupSpecs(
  specs: readonly ParameterSpec[],
  apart: boolean,
): (readonly [BucketKind, ParameterSpec[]])[] {
  const units = apart ? [...new Set(specs.map(({ name }) => unitOf(name)))] : [undefined];
  return order.flatMap((kind) =>
    units.flatMap((unit) => {
      const some = specs.filter(
        (spec) => kindOf(spec) === kind && (unit === undefined || unitOf(spec.name) === unit),
      );
      return some.length === 0 ? [] : [[kind, some] as const];
    }),
  );
}

/** The layer of a tensor, as `h.3`, or, outside of layers, how its name begins, as `wte`. */
function unitOf(name: string): string {
  return /^h\.\d+|^[^.]+/.exec(name)![0];
}
