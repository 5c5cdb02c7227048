/**
 * Plays one rank's row of a pipeline schedule with real tensors: what runs when is the schedule's
 * decision. Microbatches in flight are kept by stage and index until their last pass and their last
 * message are done, in whatever order the schedule brings them.
 */
import type { Communicator, Work } from "@trireme/collectives";
import { type Flops, type Seconds, TriremeError } from "@trireme/core";
import type { Action, ActionKind } from "@trireme/schedulers";
import type { Model, Plan, Stage } from "@trireme/workload";
import type { Kernels } from "./kernels/kernels.ts";
import { crossEntropy, crossEntropyLoss } from "./operators/cross-entropy.ts";
import type { ParameterSet } from "./parameters.ts";
import type { Pool } from "./pool.ts";
import type { SpanLog } from "./span-log.ts";
import { stageFlops } from "./stage-flops.ts";
import { Tape, type Variable, gradientOf } from "./tape.ts";
import { type Tensor, view } from "./tensor.ts";
import type { TokenBuffers } from "./token-buffers.ts";
import { stageForward } from "./transformer.ts";

/** What a player needs of its rank. */
export interface PlayerOptions {
  readonly model: Model;
  readonly plan: Plan;
  /** The stages this rank holds. */
  readonly stages: readonly Stage[];
  /** World rank of each stage of this replica's pipeline. */
  readonly rankOfStage: readonly number[];
  readonly parameters: ParameterSet;
  readonly tokens: TokenBuffers;
  readonly communicator: Communicator;
  readonly kernels: Kernels;
  readonly pool: Pool;
  readonly spans: SpanLog;
  readonly now: () => Seconds;
}

/** One microbatch in one stage, from its forward until nothing needs its tensors. */
interface Flight {
  readonly stage: Stage;
  readonly microbatch: number;
  readonly training: boolean;
  readonly tape: Tape;
  input: Variable | undefined;
  output: Variable | undefined;
  /** Messages that read tensors of the tape. */
  readonly sends: Work[];
  /** The last pass of this stage is done: B or W in training, F in evaluation. */
  computed: boolean;
  /** What another rank waits for is on its way. */
  sent: boolean;
}

export class PipelinePlayer {
  readonly #options: PlayerOptions;
  readonly #stages: ReadonlyMap<number, Stage>;
  readonly #flops: ReadonlyMap<number, (kind: ActionKind) => Flops>;
  /** By stage and microbatch, see `#key`. */
  readonly #flights = new Map<number, Flight>();
  /** Flights whose messages alone are not done. */
  #leaving: Flight[] = [];

  constructor(options: PlayerOptions) {
    const { model, plan } = options;
    this.#options = options;
    this.#stages = new Map(options.stages.map((stage) => [stage.stage, stage]));
    this.#flops = new Map(options.stages.map((s) => [s.stage, stageFlops(model, plan, s)]));
  }

  /** Plays all actions; returns the sum of the loss over the rank's tokens (0 but at the head). */
  train(actions: readonly Action[]): number {
    return this.#playAll(actions, true);
  }

  /** Plays the forward actions among these and records no way back. */
  evaluate(actions: readonly Action[]): number {
    return this.#playAll(
      actions.filter(({ kind }) => forwardKinds.has(kind)),
      false,
    );
  }

  #playAll(actions: readonly Action[], training: boolean): number {
    const { now, spans } = this.#options;
    let loss = 0;
    for (const action of actions) {
      const { kind, stage, microbatch } = action;
      const flight = this.#flight(stage, microbatch, training);
      const start = now();
      let bytes = 0;
      if (kind === "F") loss += this.#forward(flight);
      else bytes = this.#play(flight, kind);
      spans.add(kind, stage, microbatch, start, now(), bytes, this.#flops.get(stage)!(kind));
      if (this.#complete(flight)) this.#leave(flight);
      this.#release();
    }
    for (const { sends } of this.#leaving) for (const send of sends) send.wait();
    this.#release();
    if (this.#flights.size > 0) {
      const left = Array.from(this.#flights.values(), (f) => `${f.stage.stage}F${f.microbatch}`);
      throw new TriremeError("SCHEDULE", `the schedule ends before the backward of ${left[0]}`);
    }
    return loss;
  }

  /** Any action but F; returns the bytes it moves between ranks. */
  #play(flight: Flight, kind: ActionKind): number {
    const { communicator, pool, rankOfStage } = this.#options;
    const { stage: number } = flight.stage;
    switch (kind) {
      case "RECV_F": {
        const input = this.#boundary(flight);
        flight.input = input;
        communicator.receive(view(pool.memory, input.value), rankOfStage[number - 1]!).wait();
        return input.value.size * 4;
      }
      case "RECV_B": {
        const output = flight.output!;
        output.gradient = flight.tape.allocate(output.value.dims);
        communicator.receive(view(pool.memory, output.gradient), rankOfStage[number + 1]!).wait();
        return output.gradient.size * 4;
      }
      case "SEND_F":
        return this.#send(flight, flight.output!.value, number + 1);
      case "SEND_B":
        return this.#send(flight, gradientOf(flight.input!), number - 1);
      case "B":
        flight.tape.backward();
        flight.computed = true;
        this.#passBack(flight);
        return 0;
      case "I":
        flight.tape.backwardInput();
        this.#passBack(flight);
        return 0;
      case "W":
        flight.tape.backwardWeight();
        flight.computed = true;
        return 0;
      default:
        throw new TriremeError("ACTION", `the embedded engine cannot play ${number}${kind}`);
    }
  }

  #forward(flight: Flight): number {
    const { model, plan, parameters, tokens } = this.#options;
    const { stage, tape, training } = flight;
    const row = flight.microbatch * plan.microbatch;
    const output = stageForward(tape, model, stage, parameters, {
      batch: plan.microbatch,
      sequence: plan.sequence,
      tokens: tokens.inputs(row),
      hidden: flight.input,
    });
    flight.output = output;
    flight.computed = !training;
    if (!stage.head) {
      if (this.#isLocal(stage.stage + 1)) this.#passOn(flight, output);
      return 0;
    }
    const targets = tokens.targets(row);
    if (!training) return crossEntropyLoss(tape, output, targets);
    // The mean over the global batch: gradients of all microbatches and replicas just add up.
    return crossEntropy(tape, output, targets, 1 / (plan.globalBatch * plan.sequence));
  }

  /** Gives the output to the next stage on this rank. */
  #passOn(flight: Flight, output: Variable): void {
    const { stage, microbatch, training, tape } = flight;
    // Without a way back the next stage takes over the tape; else each stage frees its own.
    const next = this.#flight(stage.stage + 1, microbatch, training, training ? undefined : tape);
    next.input = { value: output.value, needsGradient: training, gradient: undefined };
    if (!training) this.#flights.delete(this.#key(stage.stage, microbatch));
  }

  /** Gives the gradient of the input to the previous stage on this rank. */
  #passBack(flight: Flight): void {
    const { stage, microbatch, input } = flight;
    if (stage.embedding || input === undefined || !this.#isLocal(stage.stage - 1)) return;
    const before = this.#flight(stage.stage - 1, microbatch, true);
    const gradient = before.tape.allocate(input.value.dims);
    this.#options.pool.copy(gradientOf(input).pointer, gradient.pointer, gradient.size);
    before.output!.gradient = gradient;
  }

  #send(flight: Flight, tensor: Tensor, to: number): number {
    const { communicator, pool, rankOfStage } = this.#options;
    flight.sends.push(communicator.send(view(pool.memory, tensor), rankOfStage[to]!));
    flight.sent = to < flight.stage.stage || !flight.training;
    return tensor.size * 4;
  }

  /** A stage input [microbatch·sequence, hidden] that another rank fills. */
  #boundary({ tape, training }: Flight): Variable {
    const { model, plan } = this.#options;
    return tape.variable([plan.microbatch * plan.sequence, model.hidden], training);
  }

  #flight(number: number, microbatch: number, training: boolean, tape?: Tape): Flight {
    const key = this.#key(number, microbatch);
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      const { kernels, pool } = this.#options;
      flight = {
        stage: this.#stages.get(number)!,
        microbatch,
        training,
        tape: tape ?? new Tape(kernels, pool, training),
        input: undefined,
        output: undefined,
        sends: [],
        computed: false,
        sent: false,
      };
      this.#flights.set(key, flight);
    }
    return flight;
  }

  #key(stage: number, microbatch: number): number {
    return microbatch * this.#options.rankOfStage.length + stage;
  }

  #isLocal(stage: number): boolean {
    return this.#stages.has(stage);
  }

  /** Whether no action on this microbatch in this stage is still to come. */
  #complete({ stage, training, computed, sent }: Flight): boolean {
    const neighbour = stage.stage + (training ? -1 : 1);
    const outside = training ? stage.embedding : stage.head;
    return computed && (sent || outside || this.#isLocal(neighbour));
  }

  #leave(flight: Flight): void {
    // In evaluation a stage whose successor is local has handed over its tape and is gone already.
    if (this.#flights.delete(this.#key(flight.stage.stage, flight.microbatch))) {
      this.#leaving.push(flight);
    }
  }

  #release(): void {
    if (this.#leaving.length === 0) return;
    this.#leaving = this.#leaving.filter(({ sends, tape }) => {
      if (!sends.every((send) => send.done)) return true;
      tape.release();
      return false;
    });
  }
}

const forwardKinds: ReadonlySet<ActionKind> = new Set(["F", "SEND_F", "RECV_F"]);
