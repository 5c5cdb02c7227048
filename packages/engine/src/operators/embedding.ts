import type { Parameter, Tape, Variable } from "../tape.ts";
import { gradientOf } from "../tape.ts";

/**
 * Rows of `table` [vocab, width] by token, plus rows of `positions` [context, width] by place in the
 * sequence, if given: to [batch·sequence, width]. `tokens` points to batch·sequence i32.
 */
export function embedding(
  tape: Tape,
  tokens: number,
  batch: number,
  sequence: number,
  table: Parameter,
  positions?: Parameter,
): Variable {
  const { kernels } = tape;
  const width = table.value.dims[1]!;
  const y = tape.variable([batch * sequence, width]);
  const place = positions?.value.pointer ?? 0;
  kernels.embeddingForward(
    tokens,
    place,
    table.value.pointer,
    y.value.pointer,
    batch,
    sequence,
    width,
  );
  tape.record({
    weight: () => {
      const [dtable, dplace] = [table.gradient.pointer, positions?.gradient.pointer ?? 0];
      kernels.embeddingBackward(
        tokens,
        gradientOf(y).pointer,
        dtable,
        dplace,
        batch,
        sequence,
        width,
      );
    },
  });
  return y;
}
