/**
 * Error keywords in the output of training, as it comes (MegaScale's daemon, section 4.1). One
 * incident is told once, however many lines it fills, and again once the detector was reset.
 */
import { type KnownError, knownErrors } from "./known-errors.ts";

/** Longest part of a line that is read: a dumped tensor must not hold the detector up. */
const longestLine = 4096;

/** The first known error that a line is, by the order of the rules. */
export function matchLine(
  line: string,
  rules: readonly KnownError[] = knownErrors,
): KnownError | undefined {
  const text = line.length > longestLine ? line.slice(0, longestLine) : line;
  return rules.find(({ pattern }) => pattern.test(text));
}

export interface KeywordFinding {
  readonly host: number;
  readonly error: KnownError;
  readonly line: string;
}

/** Watches the lines of all hosts. */
export class KeywordWatch {
  readonly #rules: readonly KnownError[];
  readonly #told = new Map<number, Set<string>>();

  /** @param rules Rules without the `g` and `y` flags, whose patterns would keep state. */
  constructor(rules: readonly KnownError[] = knownErrors) {
    this.#rules = rules;
  }

  /** Takes a line; a finding when it is an error of a reason not yet told of this host. */
  observe(host: number, line: string): KeywordFinding | undefined {
    const error = matchLine(line, this.#rules);
    if (error === undefined) return undefined;
    const told = this.#told.get(host) ?? new Set();
    if (told.has(error.reason)) return undefined;
    this.#told.set(host, told.add(error.reason));
    return { host, error, line };
  }

  /** Forgets what was told, of one host or all: an incident is over. */
  reset(host?: number): void {
    if (host === undefined) this.#told.clear();
    else this.#told.delete(host);
  }
}
