/**
 * Delayed scaling of FP8 operands (Micikevicius et al., 2022; as in Transformer Engine): an operand is
 * scaled by the greatest that it has been in the last steps. The maxima of a step are those over the
 * global batch and the whole tensor, so that a plan's scales do not depend on its layout; they are part
 * of the state, and so of checkpoints.
 */
import type { Communicator } from "@trireme/collectives";
import type { ParameterSpec } from "../parameters/parameter.ts";
import type { OperandRole } from "../tape/product-format.ts";
import type { StageWeights } from "./stage-weights.ts";
import { view } from "../memory/tensor.ts";

/** Steps that a scale looks back on (Transformer Engine's default is 1,024). */
const steps = 16;
const roles: readonly OperandRole[] = ["input", "weight", "gradient"];
const suffix = ".amax";

/** The tensors of a stage, each matrix whose products are scaled followed by its maxima [roles, steps], newest first. */
export function besideMaxima(specs: readonly ParameterSpec[]): ParameterSpec[] {
  return specs.flatMap((spec) => (isScaled(spec) ? [spec, maximaOf(spec)] : [spec]));
}

/** Whether a name is that of such maxima. */
export function isMaxima(name: string): boolean {
  return name.endsWith(suffix);
}

/** Matrices of layers; routers compute in float32. */
function isScaled({ name, dims }: ParameterSpec): boolean {
  const router = name.endsWith(".router.weight");
  return name.startsWith("h.") && name.endsWith(".weight") && dims.length === 2 && !router;
}

function maximaOf({ name, role }: ParameterSpec): ParameterSpec {
  return {
    name: `${name}${suffix}`,
    dims: [roles.length, steps],
    slice: undefined,
    initial: { constant: 0 },
    role: role === "expert" ? "expert-state" : "state",
    decays: false,
  };
}

/** The maxima of one matrix's operands. */
interface Maxima {
  readonly history: Float32Array;
  /** By role, of the step under way. */
  readonly now: Float32Array;
}

export class DelayedScaling {
  readonly #byWeight = new Map<string, Maxima>();
  /** Maxima, and the ranks that hold any part of their matrices. */
  readonly #groups: { readonly maxima: readonly Maxima[]; readonly peers: Communicator }[] = [];

  /** Takes on the maxima of a stage. */
  add(memory: WebAssembly.Memory, { states }: StageWeights): void {
    for (const { parameters, replicas } of states) {
      const maxima = parameters.flatMap(({ name, value }): Maxima[] => {
        if (!isMaxima(name)) return [];
        const made = { history: view(memory, value), now: new Float32Array(roles.length) };
        this.#byWeight.set(name.slice(0, -suffix.length), made);
        return [made];
      });
      if (maxima.length > 0) this.#groups.push({ maxima, peers: replicas });
    }
  }

  /** The greatest that this operand of the products with `weight` has been in recent steps; 0 for none. */
  greatest(weight: string, role: OperandRole): number {
    const start = roles.indexOf(role) * steps;
    let greatest = 0;
    for (let i = start; i < start + steps; i++) {
      greatest = Math.max(greatest, this.#of(weight).history[i]!);
    }
    return greatest;
  }

  /** Notes how great the operand is now. */
  see(weight: string, role: OperandRole, greatest: number): void {
    const { now } = this.#of(weight);
    const at = roles.indexOf(role);
    now[at] = Math.max(now[at]!, greatest);
  }

  /** Forgets what was seen outside of a step. */
  beginStep(): void {
    for (const { now } of this.#byWeight.values()) now.fill(0);
  }

  /** Adds the step's maxima over all ranks to the history. */
  endStep(): void {
    for (const { maxima, peers } of this.#groups) {
      const count = maxima.length * roles.length;
      const mine = new Float32Array(count);
      maxima.forEach(({ now }, i) => mine.set(now, i * roles.length));
      const all = new Float32Array(count * peers.ranks);
      peers.allGather(mine, all).wait();
      maxima.forEach(({ history }, i) => {
        for (let role = 0; role < roles.length; role++) {
          let greatest = 0;
          for (let at = i * roles.length + role; at < all.length; at += count) {
            greatest = Math.max(greatest, all[at]!);
          }
          const row = history.subarray(role * steps, (role + 1) * steps);
          row.copyWithin(1, 0);
          // A number that is none would stay for as long as it is looked back on.
          row[0] = Number.isFinite(greatest) ? greatest : 0;
        }
      });
    }
  }

  #of(weight: string): Maxima {
    const found = this.#byWeight.get(weight);
    if (found === undefined) throw new Error(`no maxima of ${weight} in this rank's stages`);
    return found;
  }
}
