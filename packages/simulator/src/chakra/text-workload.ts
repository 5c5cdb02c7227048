/**
 * Text workloads of ASTRA-sim 1 and SimAI: a line that names the parallelism (and in SimAI's form gives
 * degrees), the number of layers, and a line a layer: name, reserved number, then for forward, input
 * gradient and weight gradient the computing time in nanoseconds, the collective and its bytes; last the
 * time of the update.
 */
import { type Bytes, type Seconds, TriremeError, nearestName } from "@trireme/core";

/** Collectives of the format; a suffix says of which group: none, "_EP", "_DP_EP" or "_DP". */
const collectives = ["NONE", "ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"] as const;

/** A pass of a layer. */
export interface TextPass {
  readonly compute: Seconds;
  readonly collective: (typeof collectives)[number];
  /** Of which group: of the pass's own where the format names none. */
  readonly group: "" | "EP" | "DP" | "DP_EP";
  readonly bytes: Bytes;
}

/** A layer. */
export interface TextLayer {
  readonly name: string;
  readonly forward: TextPass;
  readonly inputGradient: TextPass;
  readonly weightGradient: TextPass;
  readonly update: Seconds;
}

/** A workload of one rank; all do the same. */
export interface TextWorkload {
  /** First word: "DATA", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", … */
  readonly parallelism: string;
  /** Degrees of SimAI's header; each is 1 when it is not there, `allGpus` the product. */
  readonly tp: number;
  readonly ep: number;
  readonly pp: number;
  readonly vpp: number;
  readonly microbatches: number;
  readonly allGpus: number;
  /** Bytes from stage to stage. */
  readonly boundary: Bytes;
  readonly layers: readonly TextLayer[];
}

const parallelisms = [
  "DATA",
  "MODEL",
  "HYBRID_DATA_MODEL",
  "HYBRID_MODEL_DATA",
  "HYBRID_TRANSFORMER",
  "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
  "MICRO",
] as const;

const keys = new Map<string, string>([
  ["model_parallel_NPU_group", "tp"],
  ["ep", "ep"],
  ["pp", "pp"],
  ["vpp", "vpp"],
  ["ga", "microbatches"],
  ["all_gpus", "allGpus"],
  ["pp_comm", "boundary"],
  ["checkpoints", "checkpoints"],
  ["checkpoint_initiates", "checkpointInitiates"],
]);

/**
 * Reads a text workload. Times may pass 2³¹ nanoseconds.
 * @throws TriremeError "WORKLOAD" with the line, the field and its value.
 */
export function parseTextWorkload(text: string): TextWorkload {
  const lines = text.split(/\r?\n/);
  while (lines.length > 0 && lines.at(-1)!.trim() === "") lines.pop();
  const header = (lines[0] ?? "").trim().split(/\s+/);
  const parallelism = header[0] ?? "";
  if (!parallelisms.some((each) => each === parallelism)) {
    const near = nearestName(parallelism, parallelisms);
    fail(
      1,
      "parallelism",
      parallelism,
      near === undefined ? `use one of ${parallelisms.join(", ")}` : `did you mean "${near}"?`,
    );
  }
  const values = headerValues(header.slice(1));
  const count = integer(2, "layers", (lines[1] ?? "").trim(), 1);
  if (lines.length - 2 !== count) {
    fail(2, "layers", String(count), `there are ${lines.length - 2} lines of layers`);
  }
  const [tp, ep, pp] = [values.get("tp") ?? 1, values.get("ep") ?? 1, values.get("pp") ?? 1];
  const allGpus = values.get("allGpus") ?? tp * pp;
  if (allGpus % (tp * pp) !== 0) {
    fail(
      1,
      "all_gpus",
      String(allGpus),
      `it is not a multiple of tp(${tp}) x pp(${pp}) = ${tp * pp}`,
    );
  }
  if ((allGpus / pp) % ep !== 0) {
    fail(
      1,
      "ep",
      String(ep),
      `it does not divide all_gpus(${allGpus}) / pp(${pp}) = ${allGpus / pp}`,
    );
  }
  return {
    parallelism,
    tp,
    ep,
    pp,
    vpp: values.get("vpp") ?? 1,
    microbatches: values.get("microbatches") ?? 1,
    allGpus,
    boundary: values.get("boundary") ?? 0,
    layers: lines.slice(2).map((line, i) => layerOf(line, i + 3)),
  };
}

/** Prints a workload in SimAI's form. Times are rounded to nanoseconds. */
export function printTextWorkload(w: TextWorkload): string {
  const header = [
    w.parallelism,
    `model_parallel_NPU_group: ${w.tp} ep: ${w.ep} pp: ${w.pp} vpp: ${w.vpp} ga: ${w.microbatches}`,
    `all_gpus: ${w.allGpus} checkpoints: 0 checkpoint_initiates: 0 pp_comm: ${w.boundary}`,
  ].join(" ");
  const pass = ({ compute, collective, group, bytes }: TextPass): string =>
    [
      Math.round(compute * 1e9),
      group === "" || collective === "NONE" ? collective : `${collective}_${group}`,
      Math.round(bytes),
    ].join("\t");
  const layers = w.layers.map(({ name, forward, inputGradient, weightGradient, update }) =>
    [
      name,
      -1,
      pass(forward),
      pass(inputGradient),
      pass(weightGradient),
      Math.round(update * 1e9),
    ].join("\t"),
  );
  return `${[header, w.layers.length, ...layers].join("\n")}\n`;
}

function headerValues(words: readonly string[]): Map<string, number> {
  const values = new Map<string, number>();
  for (let i = 0; i < words.length; i += 2) {
    const word = words[i]!.replace(/:$/, "");
    const key = keys.get(word);
    if (key === undefined) {
      const near = nearestName(word, keys.keys());
      fail(
        1,
        "header",
        word,
        near === undefined ? "the key is not known" : `did you mean "${near}"?`,
      );
    }
    const least = key === "boundary" || key.startsWith("checkpoint") ? 0 : 1;
    values.set(key, integer(1, word, words[i + 1] ?? "", least));
  }
  if ((values.get("checkpoints") ?? 0) > 0) {
    fail(
      1,
      "checkpoints",
      String(values.get("checkpoints")),
      "recomputed layers are not supported; use 0",
    );
  }
  return values;
}

function layerOf(line: string, at: number): TextLayer {
  const fields = line.trim().split(/\s+/);
  if (fields.length !== 12)
    fail(at, "layer", line.trim(), `it has ${fields.length} fields, not 12`);
  const pass = (from: number, what: string): TextPass => {
    const named = fields[from + 1]!;
    const found = /^([A-Z]+?)(?:_(DP_EP|EP|DP))?$/.exec(named);
    const collective = collectives.find((each) => each === found?.[1]);
    if (collective === undefined) {
      const near = nearestName(named, collectives);
      fail(
        at,
        `${what} collective`,
        named,
        near === undefined ? `use one of ${collectives.join(", ")}` : `did you mean "${near}"?`,
      );
    }
    const suffix = found?.[2];
    return {
      compute: integer(at, `${what} time`, fields[from]!, 0) / 1e9,
      collective,
      group: suffix === "EP" || suffix === "DP" || suffix === "DP_EP" ? suffix : "",
      bytes: integer(at, `${what} bytes`, fields[from + 2]!, 0),
    };
  };
  return {
    name: fields[0]!,
    forward: pass(2, "forward"),
    inputGradient: pass(5, "input-gradient"),
    weightGradient: pass(8, "weight-gradient"),
    update: integer(at, "update time", fields[11]!, 0) / 1e9,
  };
}

function integer(line: number, field: string, value: string, least: number): number {
  const number = /^\d+(\.0+)?$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= least) return number;
  return fail(line, field, value, `use an integer from ${least} up`);
}

function fail(line: number, field: string, value: string, rule: string): never {
  const short = value.length > 60 ? `${value.slice(0, 60)}…` : value;
  throw new TriremeError("WORKLOAD", `line ${line}, ${field} "${short}": ${rule}`);
}
