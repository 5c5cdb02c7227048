/**
 * The grammar of `NCCL_ALGO` and `NCCL_PROTO`: `ring,collnetdirect;allreduce:tree,ring;broadcast:^tree`.
 * Items are separated by `;`; each is a list for one function, or, first only, for all; `^` before a
 * list means all but these.
 */
import { TriremeError, nearestName } from "@trireme/core";
import {
  type NcclAlgorithm,
  type NcclProtocol,
  type TunedOperation,
  ncclAlgorithms,
  ncclProtocols,
} from "./profile.ts";

/** Allowed algorithms and protocols by function; all are where a function is missing. */
export interface NcclEnvironment {
  readonly algorithms: ReadonlyMap<TunedOperation, ReadonlySet<NcclAlgorithm>>;
  readonly protocols: ReadonlyMap<TunedOperation, ReadonlySet<NcclProtocol>>;
}

const functions: Readonly<Record<string, TunedOperation>> = {
  allreduce: "all-reduce",
  allgather: "all-gather",
  reducescatter: "reduce-scatter",
  broadcast: "broadcast",
  reduce: "reduce",
};

function lookup<T extends string>(variable: string, word: string, known: readonly T[]): T {
  const plain = (name: string): string => name.replaceAll("-", "").toLowerCase();
  const found = known.find((name) => plain(name) === plain(word));
  if (found !== undefined) return found;
  const nearest = nearestName(word, known.map(plain));
  throw new TriremeError(
    "NCCL_ENVIRONMENT",
    `${variable}: unknown "${word}"; ${nearest === undefined ? `known are ${known.map(plain).join(", ")}` : `did you mean "${nearest}"?`}`,
  );
}

function parse<T extends string>(
  variable: string,
  text: string | undefined,
  known: readonly T[],
): Map<TunedOperation, Set<T>> {
  const allowed = new Map<TunedOperation, Set<T>>();
  if (text === undefined || text.trim() === "") return allowed;
  const operations = Object.values(functions);
  text.split(";").forEach((item, index) => {
    const colon = item.indexOf(":");
    if (colon < 0 && index > 0) {
      throw new TriremeError(
        "NCCL_ENVIRONMENT",
        `${variable}: item ${index + 1} "${item}" names no function; only the first may, write for example "allreduce:${item}"`,
      );
    }
    const list = item.slice(colon + 1).trim();
    const negated = list.startsWith("^");
    const words = (negated ? list.slice(1) : list).split(",").map((word) => word.trim());
    const named = new Set(words.map((word) => lookup(variable, word, known)));
    const set = negated ? new Set(known.filter((name) => !named.has(name))) : named;
    const target = item.slice(0, Math.max(0, colon)).trim();
    const of =
      colon < 0 ? operations : [functions[lookup(variable, target, Object.keys(functions))]!];
    for (const operation of of) allowed.set(operation, set);
  });
  return allowed;
}

/**
 * Parses the two variables; a missing or empty one allows everything. Throws `NCCL_ENVIRONMENT` with
 * the word and the nearest known one.
 */
export function ncclEnvironment(variables: {
  readonly NCCL_ALGO?: string | undefined;
  readonly NCCL_PROTO?: string | undefined;
}): NcclEnvironment {
  return {
    algorithms: parse("NCCL_ALGO", variables.NCCL_ALGO, ncclAlgorithms),
    protocols: parse("NCCL_PROTO", variables.NCCL_PROTO, ncclProtocols),
  };
}

/** Whether the variables leave this choice. */
export function allows(
  environment: NcclEnvironment,
  operation: TunedOperation,
  algorithm: NcclAlgorithm,
  protocol: NcclProtocol,
): boolean {
  return (
    (environment.algorithms.get(operation)?.has(algorithm) ?? true) &&
    (environment.protocols.get(operation)?.has(protocol) ?? true)
  );
}
