/** Command-line options of a launcher script as a list of names with their values. */
import { RunError } from "../problem.ts";

/** Options that were read, each asked for once; what nobody asked for is left over. */
export class OptionList {
  readonly #values = new Map<string, readonly string[]>();
  readonly #asked = new Set<string>();

  /**
   * @param text Options as in a shell script: quotes, comments and line continuations are understood.
   * @throws RunError for a value without an option, or an unset shell variable.
   */
  constructor(text: string | readonly string[]) {
    let name: string | undefined;
    for (const word of typeof text === "string" ? wordsOf(text) : text) {
      const equals = /^(--[\w-]+)=(.*)$/s.exec(word);
      if (equals !== null) {
        name = equals[1]!;
        this.#values.set(name, [equals[2]!]);
      } else if (/^--?[A-Za-z]/.test(word)) {
        name = word;
        this.#values.set(name, []);
      } else {
        if (name === undefined) throw refusal(word, "a value without an option before it");
        if (/\$/.test(word)) throw refusal(word, `${name} has a shell variable; put its value in`);
        this.#values.set(name, [...this.#values.get(name)!, word]);
      }
    }
  }

  /** Whether a flag is there. */
  flag(name: string): boolean {
    this.#asked.add(name);
    return this.#values.has(name);
  }

  /** The text of an option; undefined when it is not there. */
  text(name: string): string | undefined {
    this.#asked.add(name);
    return this.#values.get(name)?.[0];
  }

  /** @throws RunError when the option is there and is no number. */
  number(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) {
      if (this.#values.has(name)) throw refusal(name, "needs a number");
      return undefined;
    }
    // Python's own spelling of numbers has underscores.
    const value = Number(text.replaceAll("_", ""));
    if (text === "" || Number.isNaN(value)) throw refusal(text, `${name} must be a number`);
    return value;
  }

  /** What nobody asked for. */
  leftOver(): readonly { readonly name: string; readonly value: string }[] {
    return [...this.#values]
      .filter(([name]) => !this.#asked.has(name))
      .map(([name, values]) => ({ name, value: values.join(" ") }));
  }
}

function wordsOf(text: string): string[] {
  const bare = text.replaceAll(/(^|\s)#[^\n]*/g, "$1").replaceAll(/\\\r?\n/g, " ");
  const words = bare.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

function refusal(value: string, rule: string): RunError {
  return new RunError([{ path: [], value, rule }]);
}
