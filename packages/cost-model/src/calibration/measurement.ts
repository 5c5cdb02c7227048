/** A measured operator, and what follows from its name: FLOPs and bytes of a known kind. */
import { type Bytes, type Flops, type Seconds, TriremeError } from "@trireme/core";
import { type Operator, type OperatorKind, type Pass } from "@trireme/workload";

/** One execution of an operator, alone. */
export interface Measurement {
  readonly operator: Operator;
  readonly seconds: Seconds;
}

/** How many numbers a shape has, by kind (see `Operator.shape`). */
const shapeSizes: Readonly<Record<OperatorKind, number>> = {
  gemm: 4,
  "grouped-gemm": 4,
  attention: 5,
  norm: 2,
  activation: 2,
  add: 2,
  embedding: 3,
  loss: 2,
  convolution: 2,
  scan: 4,
  routing: 3,
  permutation: 2,
  optimizer: 1,
};

const passes: readonly string[] = [
  "forward",
  "recompute",
  "input-gradient",
  "weight-gradient",
  "update",
] satisfies readonly Pass[];

/** What a line of measurements says of an operator. */
export interface OperatorText {
  readonly kind: string;
  readonly form: string;
  readonly pass: string;
  /** Numbers joined by "x". */
  readonly shape: string;
  /** Left out: worked out for products and attention. */
  readonly flops?: Flops;
  readonly bytes?: Bytes;
}

/** The operator; throws TriremeError "MEASUREMENTS" that says what is wrong with the text, without its place. */
export function measuredOperator(text: OperatorText): Operator {
  const { form } = text;
  const { kind, pass } = text;
  if (!isKind(kind)) fail(`kind "${kind}" is none of ${Object.keys(shapeSizes).join(", ")}`);
  if (!isPass(pass)) fail(`pass "${pass}" is none of ${passes.join(", ")}`);
  if (form === "") fail(`the ${kind} has no form`);
  const shape = text.shape.split("x").map(Number);
  const size = shapeSizes[kind];
  // A scan's kernel without a product has no inner width.
  const least = (i: number): number => (kind === "scan" && i === 3 ? 0 : 1);
  if (shape.length !== size || shape.some((n, i) => !Number.isSafeInteger(n) || n < least(i))) {
    fail(`shape "${text.shape}" of a ${kind} must be ${size} positive integers joined by x`);
  }
  const { flops = flopsOf(kind, form, pass, shape), bytes = bytesOf(kind, form, pass, shape) } =
    text;
  return {
    key: `${kind}/${form}/${pass}/${text.shape}`,
    kind,
    form,
    pass,
    shape,
    flops,
    bytes,
    count: 1,
  };
}

function isKind(text: string): text is OperatorKind {
  return Object.hasOwn(shapeSizes, text);
}

function isPass(text: string): text is Pass {
  return passes.includes(text);
}

function flopsOf(kind: OperatorKind, form: string, pass: Pass, shape: readonly number[]): Flops {
  const [a, b, c, d, e] = shape;
  if (kind === "gemm") return 2 * a! * b! * c! * d!;
  if (kind === "grouped-gemm") return 2 * b! * c! * d!;
  if (kind !== "attention") return 0;
  const pairs = form.includes("full") ? d! * d! : (d! * (d! + 1)) / 2;
  // Two products forward, five backward.
  return (backward(pass) ? 10 : 4) * a! * b! * pairs * e!;
}

function backward(pass: Pass): boolean {
  return pass === "input-gradient" || pass === "weight-gradient";
}

const elementBytes: readonly (readonly [string, Bytes])[] = [
  ["fp32", 4],
  ["tf32", 4],
  ["bf16", 2],
  ["fp16", 2],
  ["fp8", 1],
  ["int8", 1],
  ["fp4", 0.5],
];

function bytesOf(kind: OperatorKind, form: string, pass: Pass, shape: readonly number[]): Bytes {
  const [a, b, c, d, e] = shape;
  const operand = elementBytes.find(([name]) => form.startsWith(name))?.[1];
  if ((kind === "gemm" || kind === "grouped-gemm") && operand !== undefined) {
    const result = Math.max(2, operand);
    return kind === "gemm"
      ? a! * (operand * d! * (b! + c!) + result * b! * c!)
      : operand * d! * (b! + a! * c!) + result * b! * c!;
  }
  if (kind === "attention" && form.startsWith("flash")) {
    // Queries, keys, values and context in 16 bits, and backward the gradients of all; the row sums in 32.
    const tensors = backward(pass) ? 2 : 1;
    return tensors * 2 * a! * d! * e! * (2 * b! + 2 * c!) + 4 * a! * b! * d!;
  }
  fail(`a ${kind} of form ${form} needs its bytes; only products and flash attention do without`);
}

function fail(message: string): never {
  throw new TriremeError("MEASUREMENTS", message);
}
