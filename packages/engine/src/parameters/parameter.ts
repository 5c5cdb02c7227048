/** What a trained tensor is, whoever holds it. */
import type { Slice } from "../memory/slice.ts";

/** A tensor of the model by its global name. */
export interface ParameterSpec {
  readonly name: string;
  /** Of the whole tensor. */
  readonly dims: readonly number[];
  /** The part that this rank holds; all of it when undefined. */
  readonly slice: Slice | undefined;
  /** Standard deviation of its first values around 0, or the constant they all have. */
  readonly initial: { readonly deviation: number } | { readonly constant: number };
  /**
   * `expert`: held by the replicas of this rank's experts. `summed`: held by all tensor-parallel ranks,
   * each of which has a part of its gradient. `state` and, of an expert, `expert-state`: the same on
   * every rank that holds any part, kept from step to step, but not trained by its gradient.
   */
  readonly role?: "expert" | "summed" | "state" | "expert-state";
  /** Not trained: what adapters stand beside. */
  readonly frozen?: boolean;
  /** Whether weight decay applies: to matrices and embeddings, not to biases and norms. */
  readonly decays: boolean;
}

/** The embedding table, which a tied output head shares. */
export const tiedTable = "wte.weight";
