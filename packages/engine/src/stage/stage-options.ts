/** What a stage is run on, and how. */
import type { Model, Plan, Stage } from "@trireme/workload";
import type { ExpertGroup } from "../experts/dispatch.ts";
import type { Router } from "../experts/router.ts";
import type { Parallel } from "../layout/parallel.ts";
import type { Range } from "../memory/slice.ts";
import type { Parameter, Variable } from "../tape/tape.ts";

/** What a stage computes on: token ids in the first one, the previous stage's output in others. */
export interface StageInput {
  readonly batch: number;
  /** The tokens of each sample here, in order. */
  readonly pieces: readonly Range[];
  /** Pointer to batch·tokens i32 token ids; used by the stage that embeds. */
  readonly tokens: number;
  /** [batch·tokens, hidden], or this rank's part of the rows; given to every stage but the first. */
  readonly hidden: Variable | undefined;
}

/** How a stage is run. */
export interface StageOptions {
  readonly model: Model;
  readonly stage: Stage;
  /** The stage's tensors on this rank. */
  readonly parameters: {
    get(name: string): Parameter;
    /** Told of the sections that are at work, in the order of `sectionNames`. */
    readonly sections?: SectionUse | undefined;
  };
  readonly parallel?: Parallel;
  /** What backward computes again. */
  readonly recompute?: Plan["recompute"];
  /** First layers of the stage for which it does; left out, all. */
  readonly recomputeLayers?: number | undefined;
  /** Of layers with experts: where they are, and the layer's router by its name. */
  readonly experts?: ExpertGroup & { readonly router: (layer: string) => Router };
}

/** What happens to the tensors of a section of a stage: the embedding, a layer, the head. */
export interface SectionUse {
  /** Before its tensors are read; the next in this direction comes after it. */
  use(section: number, toward: 1 | -1): void;
  /** Before its gradients are added to. */
  open(section: number): void;
  /** When they are complete, of one microbatch. */
  sum(section: number): void;
}
