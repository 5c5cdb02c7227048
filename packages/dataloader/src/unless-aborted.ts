/** Waiting that a signal ends. */

/** The promise, or the signal's reason should that come first. Leaves no listener behind. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(asError(signal.reason));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    const forget = (): void => signal.removeEventListener("abort", abort);
    promise.then(resolve, reject).finally(forget);
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
