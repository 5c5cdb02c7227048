/** Trying again: growing pauses, a bound on failures in a row, on silence, and on the whole. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Seconds, TriremeError } from "@trireme/core";
import { RemoteFailure } from "./remote-object.ts";

/** How hard to try. */
export interface RetryOptions {
  /** Tries without any progress before giving up. Default 5. */
  readonly attempts?: number;
  /** Pause after the first failure, doubled after each that follows, up to a minute. Default 0.5. */
  readonly pause?: Seconds;
  /** A try that brings no byte for so long is given up. Default 30. */
  readonly silence?: Seconds;
  /** For all tries and pauses of one reading together. Default none. */
  readonly deadline?: Seconds;
}

/**
 * Runs `attempt` until it succeeds. It gets a signal to hand on, and calls `alive` for each sign of
 * life; a try during which `progress()` grew starts the count of failures anew. Rejects with the
 * signal's reason when that is aborted, else with a `TriremeError` of code "REMOTE" in one line.
 */
export async function retrying<T>(
  name: string,
  options: RetryOptions,
  signal: AbortSignal | undefined,
  progress: () => number | Promise<number>,
  attempt: (signal: AbortSignal, alive: () => void) => Promise<T>,
): Promise<T> {
  const { attempts = 5, pause = 0.5, silence = 30, deadline } = options;
  checkRetries(name, options);
  const over = deadline === undefined ? undefined : AbortSignal.timeout(timer(deadline));
  const outer = [signal, over].filter((one) => one !== undefined);
  const isOver = (): boolean => over?.aborted === true;
  const late = (cause: unknown): TriremeError =>
    new TriremeError("REMOTE", `${name}: not done within ${deadline} s`, { cause });
  for (let failures = 0; ;) {
    signal?.throwIfAborted();
    const before = await progress();
    const quiet = new AbortController();
    const hush = (): void =>
      quiet.abort(new RemoteFailure(`${name}: no byte for ${silence} s`, true));
    const quietFor = setTimeout(hush, timer(silence));
    try {
      return await attempt(
        AbortSignal.any([...outer, quiet.signal]),
        () => void quietFor.refresh(),
      );
    } catch (error) {
      signal?.throwIfAborted();
      if (isOver()) throw late(error);
      // What a library throws for an aborted request says less than the reason for aborting it.
      const cause: unknown = quiet.signal.aborted ? quiet.signal.reason : error;
      const reason = cause instanceof Error ? cause.message : String(cause);
      if (cause instanceof TriremeError) throw cause;
      if (cause instanceof RemoteFailure && !cause.again)
        throw new TriremeError("REMOTE", reason, { cause });
      failures = (await progress()) > before ? 1 : failures + 1;
      if (failures >= attempts) {
        throw new TriremeError("REMOTE", `${name}: failed ${failures} times in a row: ${reason}`, {
          cause,
        });
      }
      const asked = cause instanceof RemoteFailure ? cause.retryAfter : 0;
      const wait = Math.min(60, Math.max(asked, pause * 2 ** (failures - 1)));
      const waiting = outer.length === 0 ? {} : { signal: AbortSignal.any(outer) };
      await sleep(1000 * wait, undefined, waiting).catch(() => undefined);
      signal?.throwIfAborted();
      if (isOver()) throw late(cause);
    } finally {
      clearTimeout(quietFor);
    }
  }
}

/** Milliseconds as timers take them: what is longer than 24 days would count as none. */
function timer(seconds: Seconds): number {
  return Math.min(Math.ceil(1000 * seconds), 2 ** 31 - 1);
}

function checkRetries(name: string, { attempts = 1, pause = 0, ...times }: RetryOptions): void {
  if (!(attempts === Infinity || (Number.isInteger(attempts) && attempts >= 1)))
    throw new TriremeError("REMOTE", `${name}: attempts ${attempts}; use a positive integer`);
  if (!(pause >= 0)) throw new TriremeError("REMOTE", `${name}: pause ${pause} s; use 0 or more`);
  for (const [key, value] of Object.entries({ silence: times.silence, deadline: times.deadline })) {
    if (value !== undefined && !(value > 0))
      throw new TriremeError("REMOTE", `${name}: ${key} ${value} s; use more than 0`);
  }
}
