/** A matrix in fewer bits. */
export interface PackedValues {
  /** Whether it lies as [outputs, inputs], and not as the parameter does. */
  readonly turned: boolean;
  /** Writes it out in float32. */
  readonly unpack: (pointer: number) => void;
  /** Writes out some of its rows, where they are so alone. */
  readonly unpackRows?: (pointer: number, first: number, count: number) => void;
}
