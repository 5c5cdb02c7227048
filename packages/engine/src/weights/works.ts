/** Works that are made of others, or of none. */
import type { Work } from "@trireme/collectives";

/** Nothing was to be done. */
export const over: Work = { done: true, wait: () => {} };

/** A call and what is done when it is over, by the first to wait for it. */
export function afterwards(work: Work, finish: () => void): Work {
  let waits = true;
  return {
    get done(): boolean {
      return work.done;
    },
    wait: (): void => {
      work.wait();
      if (waits) finish();
      waits = false;
    },
  };
}
