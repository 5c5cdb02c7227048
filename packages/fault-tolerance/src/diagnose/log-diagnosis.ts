/**
 * From the log of a failed run to its cause (Acme, NSDI'24, section 5.2): compress, match known errors,
 * blame the cause and not its consequences. What no rule knows is handed over compressed, and the
 * answer, once people have it, becomes a rule.
 */
import { matchLine } from "../detect/error-keywords.ts";
import { type KnownError, type LogAction, knownErrors } from "../detect/known-errors.ts";
import { LogFilter } from "./log-filter.ts";

export interface LogLine {
  readonly text: string;
  /** Host that wrote it. */
  readonly host: number;
}

export type LogDiagnosis =
  | {
      readonly kind: "known";
      readonly reason: string;
      readonly action: LogAction;
      readonly mitigation: string;
      /** Host that logged the cause first: the one to evict, where the action is so. */
      readonly host: number;
      /** The first line of the cause. */
      readonly line: string;
      /** Reasons that matched too and were taken as consequences, in order of the rules. */
      readonly consequences: readonly string[];
    }
  /** No rule knows it: what is left of the log, for people. */
  | { readonly kind: "unknown"; readonly left: readonly string[] };

export interface LogDiagnosisOptions {
  readonly filter?: LogFilter;
  /** Cause before consequence; the known errors by default. Put rules of your own before them. */
  readonly rules?: readonly KnownError[];
}

/**
 * @param lines Lines of all hosts in order of time.
 * The reason whose rule stands first of all that match is the cause; the first line of it is shown.
 */
export function diagnoseLog(
  lines: Iterable<LogLine>,
  options: LogDiagnosisOptions = {},
): LogDiagnosis {
  const { rules = knownErrors, filter = new LogFilter() } = options;
  const order = new Map(rules.map((rule, i) => [rule, i]));
  const first = new Map<KnownError, LogLine>();
  const left: string[] = [];
  for (const line of lines) {
    if (filter.drops(line.text)) continue;
    left.push(line.text);
    const error = matchLine(line.text, rules);
    if (error !== undefined && !first.has(error)) first.set(error, line);
  }
  const found = [...first].toSorted(([a], [b]) => order.get(a)! - order.get(b)!);
  if (found.length === 0) return { kind: "unknown", left: filter.compress(left) };
  const [error, { host, text }] = found[0]!;
  return {
    kind: "known",
    reason: error.reason,
    action: error.action,
    mitigation: error.mitigation,
    host,
    line: text,
    consequences: found.slice(1).map(([each]) => each.reason),
  };
}
