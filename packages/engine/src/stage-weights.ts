/**
 * The weights of one stage on one rank, in buckets: tensors that the tensor-parallel ranks share
 * out, tensors they all hold, experts, and the table of a tied head, whose two copies are cut alike.
 */
import type { Communicator, Work } from "@trireme/collectives";
import { Bucket, type BucketOptions } from "./bucket.ts";
import { type ParameterSpec, tiedTable } from "./parameter.ts";
import type { Pool } from "./pool.ts";
import type { Parameter } from "./tape.ts";

/** What the weights of a stage are made of. */
export interface StageWeightsOptions extends Pick<
  BucketOptions,
  "replicas" | "zero" | "seed" | "kernels" | "compressed" | "wholeSums"
> {
  readonly pool: Pool;
  readonly specs: readonly ParameterSpec[];
  /** The ranks that hold the same experts. */
  readonly expertReplicas: Communicator;
  /** The tensor-parallel ranks; undefined when there is one. */
  readonly tensor: Communicator | undefined;
  /** Whether they see different tokens between products, so that gradients of shared tensors add up. */
  readonly sequenceParallel: boolean;
  /** Whether the table here is the copy of a tied head, which is neither counted nor stored. */
  readonly tableIsCopy: boolean;
}

export class StageWeights {
  /** What is trained. */
  readonly buckets: readonly Bucket[];
  /** What is kept beside it. */
  readonly state: Bucket | undefined;
  /** The bucket of the embedding table, where the stage has it. */
  readonly table: Bucket | undefined;
  readonly #byName = new Map<string, Parameter>();
  #gathering: Work[] = [];

  constructor(options: StageWeightsOptions) {
    const { specs, tensor, sequenceParallel, tableIsCopy, expertReplicas } = options;
    const isFirst = (tensor?.rank ?? 0) === 0;
    const kinds = groupSpecs(specs);
    const make = (kind: BucketKind, more: Partial<BucketOptions>): Bucket | undefined => {
      const some = kinds.get(kind);
      const common = { ...options, partial: undefined, speaks: true };
      return some && new Bucket({ ...common, specs: some, ...more });
    };
    this.table = make("table", { speaks: !tableIsCopy });
    const split = make("split", {});
    const shared = make("shared", {
      partial: sequenceParallel ? tensor : undefined,
      speaks: isFirst,
    });
    const experts = make("expert", { replicas: expertReplicas });
    const buckets = [this.table, split, shared, experts].filter((b) => b !== undefined);
    this.state = make("state", { zero: 0, frozen: true, speaks: isFirst });
    this.buckets = buckets;
    for (const { parameters } of this.state === undefined ? buckets : [...buckets, this.state]) {
      for (const parameter of parameters) this.#byName.set(parameter.name, parameter);
    }
  }

  /** The parameter by its name; its value may be read while the stage is not sharded. */
  get(name: string): Parameter {
    const parameter = this.#byName.get(name);
    if (parameter === undefined) throw new Error(`no parameter ${name} in this stage`);
    return parameter;
  }

  /** Starts to gather sharded values. */
  unshard(): readonly Work[] {
    this.#gathering = this.buckets.flatMap((bucket) => bucket.unshard() ?? []);
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
    for (const bucket of this.buckets) bucket.reshard();
  }

  /** Makes room for the gradients of a backward. */
  openGradients(): void {
    for (const bucket of this.buckets) bucket.openGradients();
  }

  /** Starts to sum the gradients over the replicas. */
  reduce(): readonly Work[] {
    return this.buckets.map((bucket) => bucket.reduce());
  }
}

type BucketKind = "table" | "split" | "shared" | "expert" | "state";

function kindOf({ name, role, slice }: ParameterSpec): BucketKind {
  if (name === tiedTable && role !== "state") return "table";
  return role ?? (slice === undefined ? "shared" : "split");
}

function groupSpecs(specs: readonly ParameterSpec[]): ReadonlyMap<BucketKind, ParameterSpec[]> {
  const groups = new Map<BucketKind, ParameterSpec[]>();
  for (const spec of specs) {
    const kind = kindOf(spec);
    const group = groups.get(kind);
    if (group === undefined) groups.set(kind, [spec]);
    else group.push(spec);
  }
  return groups;
}
