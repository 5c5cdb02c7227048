/**
 * Bitwise alignment (ByteRobust, SOSP'25, section 4.2): every group of hosts runs one step of the same
 * small model (TP2·PP2·DP2, or EP2·PP2·DP2) on the same input with deterministic kernels; a group
 * whose output differs in any bit has a host that computes wrongly.
 */
import { TriremeError } from "@trireme/core";

export interface AlignedOutput {
  /** Hosts that made it together. */
  readonly hosts: readonly number[];
  /** The output: loss, gradients or weights after the step, laid out alike on all. */
  readonly output: ArrayBufferView;
}

export type Alignment =
  /** Hosts of the outputs that differ from the reference, ascending; none where all agree. */
  | { readonly ok: true; readonly suspects: readonly number[] }
  /** No output is given by more than half, and none is known to be right. */
  | { readonly ok: false; readonly reason: string };

/**
 * Compares outputs by their bits, so that NaN equals itself and −0 differs from 0.
 * @param known The right output, where one is kept; else that of more than half is taken as right.
 * @throws TriremeError "ALIGNMENT" when outputs have different sizes.
 */
export function bitwiseAlignment(
  outputs: readonly AlignedOutput[],
  known?: ArrayBufferView,
): Alignment {
  const size = (known ?? outputs[0]?.output)?.byteLength ?? 0;
  for (const { hosts, output } of outputs) {
    if (output.byteLength === size) continue;
    throw new TriremeError(
      "ALIGNMENT",
      `hosts [${hosts.join(", ")}] gave ${output.byteLength} bytes, not ${size}: all must run the same model`,
    );
  }
  const reference = known ?? majority(outputs);
  if (reference === undefined) {
    if (outputs.length === 0) return { ok: true, suspects: [] };
    const reason = `no output of ${outputs.length} is given by more than half of them`;
    return { ok: false, reason };
  }
  const suspects = outputs.flatMap((each) =>
    sameBits(each.output, reference) ? [] : [...each.hosts],
  );
  return { ok: true, suspects: [...new Set(suspects)].toSorted((a, b) => a - b) };
}

/** Whether two views hold the same bytes. */
export function sameBits(a: ArrayBufferView, b: ArrayBufferView): boolean {
  return a.byteLength === b.byteLength && firstDifference(a, b) < 0;
}

/** The first byte at which two views of one size differ; −1 where none does. */
function firstDifference(a: ArrayBufferView, b: ArrayBufferView): number {
  const x = new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
  const y = new Uint8Array(b.buffer, b.byteOffset, b.byteLength);
  for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return i;
  return -1;
}

/** The output of more than half, by Boyer and Moore's vote and a count: no hash can collide. */
function majority(outputs: readonly AlignedOutput[]): ArrayBufferView | undefined {
  let candidate: ArrayBufferView | undefined;
  let votes = 0;
  for (const { output } of outputs) {
    if (votes === 0) candidate = output;
    votes += sameBits(output, candidate!) ? 1 : -1;
  }
  if (candidate === undefined) return undefined;
  const right = candidate;
  const count = outputs.filter((each) => sameBits(each.output, right)).length;
  return 2 * count > outputs.length ? right : undefined;
}
