/**
 * What agents and controller say to each other. An agent reports again and again, which is also its
 * heartbeat, and each report is answered by the order of then: lost, late, doubled and reordered
 * messages are harmless.
 *
 * An agent must hold to five rules, on which the proofs of the simulation rest:
 * 1. It keeps its greatest generation on the host's disk, written before it acts on the order, so
 *    that a controller which should have ended cannot lead it back. A host that has lost it comes
 *    back under a new number.
 * 2. Once it has left a generation for any other reason than an order (a crash of a worker or of
 *    the agent, a hang, a lease that ran out), it repeats a `fault` in every report until it is
 *    ordered into a greater generation, and never trains in the one it left again.
 * 3. It takes only answers to reports of its own incarnation: one on a dead connection is dropped.
 * 4. It ignores orders of a generation below its own; `train` of the generation it trains in, and
 *    `halt` of its own, mean "go on as you are".
 * 5. Having left on an order it reports at once.
 */
export interface Report {
  readonly host: number;
  /** The greatest generation the agent has been ordered into; it never goes back. */
  readonly generation: number;
  /** The last step it finished in that generation; 0 from the halt until a step is done. */
  readonly done: number;
  /**
   * The last step whose state it has made durable in that generation, with all saves before it.
   * Left out, a step done is a
   * step saved (every-step copies in a peer's memory).
   */
  readonly saved?: number;
  /**
   * Evidence of a fault: of the host itself (evict it), of the software (restart in place), or a
   * loss or gradient norm at step `done` that spiked or is not a number (roll back).
   */
  readonly fault?: "host" | "software" | "loss";
  /** What was seen, for the record: "XID 79", a line of the log. */
  readonly reason?: string;
}

/**
 * One report in the name of every host but some: what a transport hands in that elides the messages
 * of hosts that behave alike. It stands for a report of each of them at that time.
 */
export interface CohortReport {
  readonly generation: number;
  readonly done: number;
  readonly saved?: number;
  /** Hosts it does not speak for. */
  readonly except: readonly number[];
  /**
   * The transport's word that the hosts go on reporting until a later report excepts them: their
   * silence will be an event, and heartbeats need not be delivered. False where left out.
   */
  readonly lasting?: boolean;
}

export type Order =
  | {
      readonly kind: "train";
      readonly generation: number;
      /** The step a host that joins now trains first, from the state saved after step − 1. */
      readonly step: number;
      /** Batches skipped so far: step s trains batch s + skip of the data. 0 where left out. */
      readonly skip?: number;
      /** Version of the code to run. 0, the one the run began with, where left out. */
      readonly version?: number;
    }
  /** Leave every generation below this one, and wait. */
  | {
      readonly kind: "halt";
      readonly generation: number;
      /** Run the self-checks after leaving; report a host fault if one fails. */
      readonly check?: true;
    }
  | { readonly kind: "evict"; readonly reason: string };
