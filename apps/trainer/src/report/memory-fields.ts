/** Memory of the worst rank, and what it consists of. */
import { type Bytes, formatBytes } from "@trireme/core";
import type { Memory } from "@trireme/cost-model";
import type { Plan } from "@trireme/workload";
import type { Field } from "./fields.ts";

const partNames = [
  "weights",
  "gradients",
  "optimizer",
  "activations",
  "workspace",
  "overhead",
] as const;

/** One line for the total, one for each part that is not nothing. */
export function memoryFields(memory: Memory, available: Bytes, plan: Plan): readonly Field[] {
  const where = plan.pp === 1 ? "every rank" : `pipeline rank ${memory.rank}, the fullest`;
  const parts = partNames.filter((name) => memory[name] > 0);
  return [
    {
      label: "memory",
      value: formatBytes(memory.total),
      note: `of ${formatBytes(available)}, on ${where}`,
    },
    ...parts.map((name) => ({ label: `  ${name}`, value: formatBytes(memory[name]) })),
  ];
}
