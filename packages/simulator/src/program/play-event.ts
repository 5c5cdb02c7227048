/** What an event of a player means, in a number. */

/** Kinds of events: a rank has computed, a message arrived, a collective is over, a host's cores or the network moved. */
export const events = { computed: 0, arrived: 1, collected: 2, cores: 3, network: 4 } as const;

/** Bits of an event that hold its kind. */
export const eventBits = 3;

/** An event of a rank, message, collective, pool of cores or transfer. */
export function playEvent(id: number, kind: keyof typeof events): number {
  return (id << eventBits) | events[kind];
}
