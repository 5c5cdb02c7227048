import type { Seconds } from "@trireme/core";

/** Something of a store that ranges can be read of: a file of a web server, an object of S3. */
export interface RemoteObject {
  /** Its address, for errors and as its name in a cache. */
  readonly name: string;
  /** Its size, and what tells this version of it from another. */
  stat(signal: AbortSignal): Promise<RemoteStat>;
  /**
   * The bytes from `start` up to `end` (not included) of the version that `of` is. May end early. Fails
   * with a `RemoteFailure`, which says whether trying again may mend it; any other error is taken for a
   * broken connection, which is tried again.
   */
  range(start: number, end: number, of: RemoteStat, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** How another thread makes this object; undefined where it holds what cannot be handed over. */
  readonly recipe: RemoteRecipe | undefined;
}

/** A version of an object. */
export interface RemoteStat {
  /** Bytes. */
  readonly size: number;
  /** An entity tag or a version number; undefined where the store tells none. */
  readonly version: string | undefined;
}

/** A function of a module, and plain data to call it with. */
export interface RemoteRecipe {
  readonly module: string;
  readonly function: string;
  readonly options: unknown;
}

/** What a store answered instead of bytes. */
export class RemoteFailure extends Error {
  /** Whether trying again may mend it. */
  readonly again: boolean;
  /** Pause that the store asked for. */
  readonly retryAfter: Seconds;

  constructor(message: string, again: boolean, retryAfter: Seconds = 0, options?: ErrorOptions) {
    super(message, options);
    this.name = "RemoteFailure";
    this.again = again;
    this.retryAfter = retryAfter;
  }
}

/** Whether a status of HTTP is one that passes: too busy, too slow, or broken for now. */
export function passing(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429;
}

/** For an object that is not what it was when it was opened. */
export function changed(name: string, was: RemoteStat, now: Partial<RemoteStat>): RemoteFailure {
  const show = ({ size, version }: Partial<RemoteStat>): string =>
    [size === undefined ? [] : [`${size} bytes`], version === undefined ? [] : [version]]
      .flat()
      .join(", ");
  const found = show(now);
  return new RemoteFailure(
    `${name}: changed since it was opened (it was ${show(was)}${found === "" ? "" : `, is ${found}`}); open it anew`,
    false,
  );
}
