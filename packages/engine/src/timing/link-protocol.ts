import type { SharedMemory } from "@trireme/collectives";

/** What one of the two threads that time a link is given. */
export interface LinkSeed {
  readonly arena: SharedMemory;
  readonly rank: number;
}
