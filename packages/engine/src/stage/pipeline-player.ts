/**
 * Plays one rank's row of a pipeline schedule with real tensors: what runs when is the schedule's
 * decision. Microbatches in flight are kept by stage and index until their last pass and their last
 * message are done, in whatever order the schedule brings them.
 */
import type { Work } from "@trireme/collectives";
import { type Flops, type Seconds, TriremeError } from "@trireme/core";
import type { Action, ActionKind } from "@trireme/schedulers";
import type { Model, Plan, Stage } from "@trireme/workload";
import { incoming, outgoing } from "./boundary-message.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { Pool } from "../memory/pool.ts";
import type { Products } from "../tape/products.ts";
import { RestingTensor } from "../memory/resting-tensor.ts";
import type { StageCompute, StageFlight } from "./stage-compute.ts";
import type { SpanLog } from "../layout/span-log.ts";
import { stageFlops } from "./stage-flops.ts";
import type { StageBoundary } from "../staged/stage-boundary.ts";
import type { StageWeights } from "../weights/stage-weights.ts";
import { Tape, type Variable, gradientOf } from "../tape/tape.ts";
import type { Tensor } from "../memory/tensor.ts";
import { type WeightWork, isWeightAction } from "../weights/weight-work.ts";

/** What a player needs of its rank. */
export interface PlayerOptions {
  readonly weightWork: WeightWork;
  readonly spans: SpanLog;
  readonly now: () => Seconds;
  readonly model: Model;
  readonly plan: Plan;
  /** The stages this rank holds. */
  readonly stages: readonly Stage[];
  /** World rank of each stage of this replica's pipeline. */
  readonly rankOfStage: readonly number[];
  /** By stage. */
  readonly weights: ReadonlyMap<number, StageWeights>;
  readonly compute: StageCompute;
  readonly products: Products;
  /** Rows of a boundary between stages: one microbatch's tokens, or the rank's part of them. */
  readonly boundaryRows: number;
  readonly boundary: StageBoundary;
  readonly kernels: Kernels;
  readonly pool: Pool;
}

/** One microbatch in one stage, from its forward until nothing needs its tensors. */
interface Flight extends StageFlight {
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
    const { now, spans, weightWork } = this.#options;
    let loss = 0;
    for (const action of actions) {
      const { kind, stage, microbatch } = action;
      weightWork.poll();
      if (isWeightAction(kind)) {
        weightWork.play(kind, stage, this.#options.weights.get(stage)!);
        continue;
      }
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
    weightWork.finish();
    if (this.#flights.size > 0) {
      const left = Array.from(this.#flights.values(), (f) => `${f.stage.stage}F${f.microbatch}`);
      throw new TriremeError("SCHEDULE", `the schedule ends before the backward of ${left[0]}`);
    }
    return loss;
  }

  /** Any action but F; returns the bytes that this rank moves between stages. */
  #play(flight: Flight, kind: ActionKind): number {
    const { boundary, plan } = this.#options;
    const { stage: number } = flight.stage;
    switch (kind) {
      case "RECV_F": {
        const { model, boundaryRows } = this.#options;
        const { tensor, elements } = incoming(flight.tape, [boundaryRows, model.hidden]);
        flight.input = { value: tensor, needsGradient: flight.training, gradient: undefined };
        return boundary.receive(elements, number - 1, plan.sequenceParallel);
      }
      case "RECV_B": {
        const output = flight.output!;
        const { tensor, elements } = incoming(flight.tape, output.value.dims);
        output.gradient = tensor;
        const bytes = boundary.receive(elements, number + 1, plan.sequenceParallel);
        if (tensor instanceof RestingTensor) tensor.change();
        return bytes;
      }
      case "SEND_F":
        return this.#send(flight, flight.output!.value, number + 1);
      case "SEND_B":
        return this.#send(flight, gradientOf(flight.input!), number - 1);
      case "B":
      case "I":
      case "W":
        this.#backward(flight, kind);
        return 0;
      default:
        throw new TriremeError("ACTION", `the embedded engine cannot play ${number}${kind}`);
    }
  }

  #forward(flight: Flight): number {
    const { stage, training } = flight;
    this.#weights(stage.stage);
    const { output, loss } = this.#options.compute.forward(flight);
    flight.output = output;
    flight.computed = !training;
    if (!stage.head && this.#isLocal(stage.stage + 1)) this.#passOn(flight, output);
    return loss;
  }

  #backward(flight: Flight, kind: "B" | "I" | "W"): void {
    const weights = this.#weights(flight.stage.stage);
    if (weights.sections === undefined) weights.openGradients();
    this.#options.compute.backward(flight, kind);
    if (kind !== "I") flight.computed = true;
    if (kind === "W") return;
    if (flight.input !== undefined) flight.tape.free(flight.input.value);
    this.#passBack(flight);
  }

  /** The stage's weights, there to be read. */
  #weights(stage: number): StageWeights {
    const weights = this.#options.weights.get(stage)!;
    weights.ready();
    return weights;
  }

  /** Gives the output to the next stage on this rank. */
  #passOn(flight: Flight, output: Variable): void {
    const { stage, microbatch, training, tape } = flight;
    // Without a way back the next stage takes over the tape; else each stage frees its own.
    const next = this.#flight(stage.stage + 1, microbatch, training, training ? undefined : tape);
    next.tape.share(output.value);
    next.input = { value: output.value, needsGradient: training, gradient: undefined };
    if (!training) this.#flights.delete(this.#key(stage.stage, microbatch));
  }

  /** Gives the gradient of the input to the previous stage on this rank. */
  #passBack(flight: Flight): void {
    const { stage, microbatch, input } = flight;
    if (stage.embedding || input === undefined || !this.#isLocal(stage.stage - 1)) return;
    const before = this.#flight(stage.stage - 1, microbatch, true);
    const gradient = before.tape.activation(input.value.dims);
    this.#options.pool.copy(gradientOf(input).pointer, gradient.pointer, gradient.size);
    before.output!.gradient = gradient;
  }

  #send(flight: Flight, tensor: Tensor, to: number): number {
    const { boundary, plan } = this.#options;
    const elements = outgoing(flight.tape, tensor);
    const { work, bytes } = boundary.send(elements, to, plan.sequenceParallel);
    flight.sends.push(work);
    flight.sent = to < flight.stage.stage || !flight.training;
    return bytes;
  }

  #flight(number: number, microbatch: number, training: boolean, tape?: Tape): Flight {
    const key = this.#key(number, microbatch);
    let flight = this.#flights.get(key);
    if (flight === undefined) {
      const { kernels, pool, products } = this.#options;
      flight = {
        stage: this.#stages.get(number)!,
        microbatch,
        training,
        tape: tape ?? new Tape(kernels, pool, training, products),
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

const forwardKinds: ReadonlySet<ActionKind> = new Set([
  "F",
  "SEND_F",
  "RECV_F",
  "UNSHARD",
  "RESHARD",
]);
