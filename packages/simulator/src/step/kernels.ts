/** The kernels of a part in order of execution, layer by layer. */
import type { PricedOperator } from "@trireme/cost-model";
import type { Kernel } from "./step-description.ts";

/**
 * Lists kernels, each with its time × `stretch`. Equal layers are listed once in the workload, with
 * counts; a run of operators whose counts have a divisor in common is therefore that many layers.
 */
export function kernelsOf(operators: readonly PricedOperator[], stretch: number): Kernel[] {
  const list: Kernel[] = [];
  for (let from = 0; from < operators.length;) {
    let layers = operators[from]!.operator.count;
    let to = from + 1;
    while (to < operators.length) {
      const common = divisor(layers, operators[to]!.operator.count);
      if (common === 1 && layers > 1) break;
      layers = common;
      to++;
    }
    for (let layer = 0; layer < layers; layer++) {
      for (const { operator, seconds } of operators.slice(from, to)) {
        const count = operator.count / layers;
        list.push({
          name: `${operator.kind}/${operator.form}`,
          duration: seconds * count * stretch,
          flops: operator.flops * count,
        });
      }
    }
    from = to;
  }
  return list;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}
