/** Names of activations (transformers' ACT2FN) as a model's. */
import type { Model } from "../model.ts";
import { type ConfigFields, print } from "./config-fields.ts";

type Activation = Model["activation"];

const gelus = ["gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh"];
const plain: Readonly<Record<string, Activation>> = {
  ...Object.fromEntries(gelus.map((name) => [name, "gelu" as const])),
  relu: "relu",
  relu2: "squared-relu",
};
const gated: Readonly<Record<string, Activation>> = {
  ...Object.fromEntries(gelus.map((name) => [name, "geglu" as const])),
  silu: "swiglu",
  swish: "swiglu",
};

/** The activation of a feed-forward block of two projections, gate and up, and one back. */
export function gatedActivation(c: ConfigFields, ...names: readonly string[]): Activation {
  return lookUp(c, gated, "silu", names);
}

/** The activation of a feed-forward block of one projection and one back. */
export function plainActivation(c: ConfigFields, ...names: readonly string[]): Activation {
  return lookUp(c, plain, "gelu", names);
}

function lookUp(
  c: ConfigFields,
  known: Readonly<Record<string, Activation>>,
  otherwise: string,
  names: readonly string[],
): Activation {
  const value = c.value(...names) ?? otherwise;
  const found = typeof value === "string" && Object.hasOwn(known, value) ? known[value] : undefined;
  return (
    found ??
    c.fail(
      `${names[0]} ${print(value)} is not one of ${Object.keys(known).join(", ")}; its arithmetic is not known`,
    )
  );
}
