/** A program as Chakra execution traces, so that the same workload runs in ASTRA-sim. */
import { TriremeError } from "@trireme/core";
import type { SpanKind } from "@trireme/timeline";
import { type Instructions, eachInstruction, opcode } from "../program/instructions.ts";
import type { Program } from "../program/program.ts";
import {
  type ChakraNode,
  type ChakraTrace,
  chakraCollectives,
  chakraNodeTypes,
} from "./execution-trace.ts";

/** The workload of all ranks. */
export interface ChakraWorkload {
  /** By rank. */
  readonly traces: readonly ChakraTrace[];
  /** Ranks of each process group by its name, as ASTRA-sim's communicator group file (JSON) has them. */
  readonly groups: Readonly<Record<string, readonly number[]>>;
}

/** ASTRA-sim reads a group's name as a number, and takes "0" for all ranks. */
function nameOf(group: number): string {
  return String(group + 1);
}

/**
 * Exports every instruction that does something: computing, sends, receives and collectives of each
 * rank, with what it waits for. Collectives that the cost model sums up are one node with all their
 * bytes. Awaiting is a dependency, not a node.
 * @throws TriremeError "CHAKRA" for a span kind that Chakra has no collective for.
 */
export function toChakra(program: Program): ChakraWorkload {
  const groups: Record<string, readonly number[]> = {};
  program.groups.forEach((members, i) => (groups[nameOf(i)] = [...members]));
  const code = program.instructions();
  const traces = Array.from({ length: program.ranks }, (_, rank) => ({
    version: "0.0.4",
    nodes: new RankExport(program, code, rank).nodes(),
  }));
  return { traces, groups };
}

class RankExport {
  readonly #program: Program;
  readonly #code: Instructions;
  readonly #rank: number;
  readonly #nodes: ChakraNode[] = [];
  /** What the next instruction waits for, and the last collective of each stream. */
  #frontier: number[] = [];
  readonly #lastOn = new Map<number, number>();
  readonly #nodeOf = new Map<number, number>();

  constructor(program: Program, code: Instructions, rank: number) {
    this.#program = program;
    this.#code = code;
    this.#rank = rank;
  }

  nodes(): ChakraNode[] {
    eachInstruction(this.#code, this.#rank, (code, id) => this.#instruction(code, id));
    return this.#nodes;
  }

  #instruction(code: number, id: number): void {
    switch (code) {
      case opcode.compute:
        this.#frontier = [this.#compute(id)];
        break;
      case opcode.send:
        this.#message(id, true);
        break;
      case opcode.blockingSend:
        this.#frontier = [this.#message(id, true)];
        break;
      case opcode.receive:
        this.#frontier = [...this.#frontier, this.#message(id, false)];
        break;
      case opcode.enter:
        this.#collective(id);
        break;
      case opcode.blockingEnter:
        this.#frontier = [this.#collective(id)];
        break;
      case opcode.await:
        this.#frontier = [...this.#frontier, this.#nodeOf.get(id)!];
        break;
      default:
        throw new TriremeError("CHAKRA", "a program that stands still until a time has no trace");
    }
  }

  #add(
    name: string,
    type: number,
    duration: number,
    attributes: ChakraNode["attributes"],
    control: readonly number[] = [],
  ): number {
    const id = this.#nodes.length;
    this.#nodes.push({
      id,
      name,
      type,
      controlDependencies: control,
      dataDependencies: this.#frontier,
      duration,
      attributes: { is_cpu_op: false, ...attributes, seconds: duration },
    });
    return id;
  }

  #compute(work: number): number {
    const { duration, label } = this.#program.works();
    const { action, kind, flops = 0, bytes = 0 } = this.#program.labels[label[work]!]!;
    return this.#add(action, chakraNodeTypes.compute, duration[work]!, {
      kind,
      num_ops: Math.round(flops),
      tensor_size: Math.round(bytes),
    });
  }

  #message(id: number, send: boolean): number {
    const { from, to, duration, latency, send: sends, receive } = this.#program.messages();
    const label = this.#program.labels[(send ? sends : receive)[id]!]!;
    const type = send ? chakraNodeTypes.send : chakraNodeTypes.receive;
    return this.#add(label.action, type, duration[id]! + latency[id]!, {
      comm_size: Math.max(1, Math.round(label.bytes ?? 0)),
      comm_src: from[id]!,
      comm_dst: to[id]!,
      comm_tag: id % 2 ** 31,
    });
  }

  #collective(id: number): number {
    const { group, stream, duration, label } = this.#program.collectives();
    const { action, kind, bytes = 0 } = this.#program.labels[label[id]!]!;
    const members = this.#program.groups[group[id]!]!.length;
    const on = stream[id]!;
    const last = this.#lastOn.get(on);
    const node = this.#add(
      action,
      chakraNodeTypes.collective,
      duration[id]!,
      {
        comm_type: collectiveCode(kind, action),
        // ASTRA-sim counts what each rank puts in: of an all-gather its part. It refuses empty ones.
        comm_size: Math.max(1, Math.round(kind === "all-gather" ? bytes / members : bytes)),
        pg_name: nameOf(group[id]!),
      },
      last === undefined ? [] : [last],
    );
    this.#lastOn.set(on, node);
    this.#nodeOf.set(id, node);
    return node;
  }
}

function collectiveCode(kind: SpanKind, action: string): number {
  switch (kind) {
    case "all-reduce":
    case "all-gather":
    case "reduce-scatter":
    case "all-to-all":
    case "broadcast":
    case "barrier":
      return chakraCollectives[kind];
    default:
      throw new TriremeError(
        "CHAKRA",
        `${action} is a collective of kind ${kind}, which Chakra lacks`,
      );
  }
}
