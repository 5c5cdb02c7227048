/**
 * Samples of several modalities into rows with two limits at once: tokens of the backbone, which set a
 * row's shape, and work of the encoders, which sets what comes before it (MegaScale-Omni,
 * arXiv:2605.08962, hybrid packing). First-fit decreasing by the larger of the two fractions.
 */
import { TriremeError } from "@trireme/core";

/** What is packed. */
export interface HybridPackingOptions {
  /** Backbone tokens of each sample. */
  readonly tokens: ArrayLike<number>;
  /** Encoder tokens (patches, frames) of each sample. */
  readonly encoder: ArrayLike<number>;
  /** Backbone tokens of a row. */
  readonly capacity: number;
  /** Encoder tokens of a row. */
  readonly encoderCapacity: number;
}

/** Rows, in order of opening. */
export interface HybridPacking {
  readonly rowOf: Int32Array;
  readonly rows: number;
  /** Backbone and encoder tokens of each row. */
  readonly tokens: Float64Array;
  readonly encoder: Float64Array;
}

/** Packs. O(n · rows): for a global batch, not for a corpus. @throws TriremeError "PACKING" on a sample too large. */
export function packHybrid(options: HybridPackingOptions): HybridPacking {
  const { tokens, encoder, capacity, encoderCapacity } = options;
  if (!(capacity > 0) || !(encoderCapacity > 0)) {
    throw new TriremeError(
      "PACKING",
      `rows of ${capacity} tokens and ${encoderCapacity} encoder tokens; both must be positive`,
    );
  }
  if (encoder.length !== tokens.length) {
    throw new TriremeError(
      "PACKING",
      `encoder tokens of ${encoder.length} samples, backbone tokens of ${tokens.length}`,
    );
  }
  const share = (i: number): number =>
    Math.max(tokens[i]! / capacity, encoder[i]! / encoderCapacity);
  for (let i = 0; i < tokens.length; i++) {
    if (!(tokens[i]! >= 0 && encoder[i]! >= 0 && share(i) <= 1)) {
      throw new TriremeError(
        "PACKING",
        `sample ${i} has ${tokens[i]} tokens and ${encoder[i]} encoder tokens, a row ${capacity} and ${encoderCapacity}; cut it first`,
      );
    }
  }
  const order = Array.from({ length: tokens.length }, (_, i) => i).sort(
    (a, b) => share(b) - share(a) || a - b,
  );
  const rowOf = new Int32Array(tokens.length);
  const used: { tokens: number; encoder: number }[] = [];
  for (const i of order) {
    let row = used.findIndex(
      (u) => u.tokens + tokens[i]! <= capacity && u.encoder + encoder[i]! <= encoderCapacity,
    );
    if (row === -1) row = used.push({ tokens: 0, encoder: 0 }) - 1;
    used[row]!.tokens += tokens[i]!;
    used[row]!.encoder += encoder[i]!;
    rowOf[i] = row;
  }
  return {
    rowOf,
    rows: used.length,
    tokens: Float64Array.from(used, (row) => row.tokens),
    encoder: Float64Array.from(used, (row) => row.encoder),
  };
}
