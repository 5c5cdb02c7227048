import type { CorruptionWatch } from "./corruption-watch.ts";
import type { ProductFormat } from "./product-format.ts";

/** What the layers' matrix products of a rank have in common. */
export interface Products {
  /** What they compute in; left out for float32. */
  readonly format?: ProductFormat | undefined;
  /** What activations are kept in between their uses; left out for float32. */
  readonly storage?: "bf16" | undefined;
  /** What corrupts them, or looks whether something has. */
  readonly watch?: CorruptionWatch | undefined;
}
