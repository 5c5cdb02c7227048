/**
 * Log compression (Acme, NSDI'24, section 5.2): filter rules drop the lines that every healthy run
 * writes, so that the few that are left can be matched or read. Rules are regular expressions, and
 * templates learnt from healthy logs: lines that differ in their numbers only.
 */
import { TriremeError } from "@trireme/core";

/** A line with numbers, hexadecimal words and quoted strings replaced: equal for equal messages. */
export function lineTemplate(line: string): string {
  return line
    .slice(0, 4096)
    .replaceAll(/0x[\da-f]+|\b[\da-f]{8,}\b/gi, "#")
    .replaceAll(/"[^"]*"|'[^']*'/g, "#")
    .replaceAll(/\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi, "#")
    .trim();
}

/** Words that no learnt template may hide, wherever a healthy run happened to say them. */
const suspicious =
  /error|exception|fail|fatal|panic|abort|traceback|warn|xid|killed|timeout|nan\b/i;

export class LogFilter {
  readonly #patterns: readonly RegExp[];
  readonly #counts = new Map<string, number>();
  readonly #templates = new Set<string>();
  readonly #least: number;

  /**
   * @param patterns Lines to drop, without the `g` and `y` flags.
   * @param least Times a template must be seen in healthy logs before it is a rule; 3 by default.
   * @throws TriremeError "LOG_FILTER" when `least` is not a whole number from 1 up.
   */
  constructor(patterns: readonly RegExp[] = [], least = 3) {
    if (!Number.isInteger(least) || least < 1) {
      throw new TriremeError(
        "LOG_FILTER",
        `least = ${least}: use a whole number from 1 up, such as 3`,
      );
    }
    this.#patterns = patterns;
    this.#least = least;
  }

  /** Templates that have become rules, in order of learning. */
  get templates(): readonly string[] {
    return [...this.#templates];
  }

  /** Learns from the log of a run that went well. */
  learn(lines: Iterable<string>): void {
    for (const line of lines) {
      if (suspicious.test(line)) continue;
      const template = lineTemplate(line);
      const count = (this.#counts.get(template) ?? 0) + 1;
      this.#counts.set(template, count);
      if (count >= this.#least) this.#templates.add(template);
    }
  }

  /** Whether a line tells nothing. */
  drops(line: string): boolean {
    return (
      this.#patterns.some((each) => each.test(line)) || this.#templates.has(lineTemplate(line))
    );
  }

  /** The lines that are left, in order; of lines in a row that differ in numbers only, the first. */
  compress(lines: Iterable<string>): string[] {
    const left: string[] = [];
    let before: string | undefined;
    for (const line of lines) {
      if (line.trim() === "" || this.drops(line)) continue;
      const template = lineTemplate(line);
      if (template !== before) left.push(line);
      before = template;
    }
    return left;
  }
}
