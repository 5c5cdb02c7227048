/** What a player knows of each message and collective, in columns. */

/** States of messages. */
export interface MessageStates {
  /** 1 when it has arrived. */
  readonly arrived: Uint8Array;
  /**
   * Where spans are linked: when it arrived, the span before it on its sender, -1 for none, and its span at its
   * receiver.
   */
  readonly end: Float64Array;
  readonly sent: Int32Array;
  readonly received: Int32Array;
}

/** States of collectives. */
export interface CollectiveStates {
  /** 1 when it is over. */
  readonly done: Uint8Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** The span whose end let it start, -1 for none; and the span of its first member. */
  readonly cause: Int32Array;
  readonly span: Int32Array;
}

/** Messages that have not left. */
export function messageStates(count: number, links: boolean): MessageStates {
  const linked = links ? count : 0;
  return {
    arrived: new Uint8Array(count),
    end: new Float64Array(linked),
    sent: new Int32Array(linked).fill(-1),
    received: new Int32Array(linked),
  };
}

/** Collectives that have not started. */
export function collectiveStates(count: number): CollectiveStates {
  return {
    done: new Uint8Array(count),
    start: new Float64Array(count),
    end: new Float64Array(count),
    cause: new Int32Array(count).fill(-1),
    span: new Int32Array(count).fill(-1),
  };
}
