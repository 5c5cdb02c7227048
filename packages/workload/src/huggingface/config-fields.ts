/** The fields of a parsed config.json, each read as the kind of value that it must be. */
import { TriremeError } from "@trireme/core";

type Group = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields. */
export function isGroup(value: unknown): value is Group {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fields of a configuration. Where several names are given, files of different ages use either. */
export class ConfigFields {
  readonly #config: Group;
  readonly #of: string;

  /** @param of What errors call the configuration: its architecture. */
  constructor(config: Group, of: string) {
    this.#config = config;
    this.#of = of;
  }

  /** @throws TriremeError "CONFIG" naming the architecture and what is wrong. */
  fail(message: string): never {
    throw new TriremeError("CONFIG", `${this.#of}: ${message}`);
  }

  /** The first of the names that is there and not null. */
  value(...names: readonly string[]): unknown {
    const name = names.find((n) => Object.hasOwn(this.#config, n) && this.#config[n] !== null);
    return name === undefined ? undefined : this.#config[name];
  }

  /** A positive integer that must be there. */
  count(...names: readonly string[]): number {
    return this.maybeCount(...names) ?? this.fail(`${names.join(" or ")} is missing`);
  }

  maybeCount(...names: readonly string[]): number | undefined {
    const value = this.value(...names);
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 1) {
      return this.fail(`${names[0]} ${print(value)} must be a whole number, 1 or more`);
    }
    return value;
  }

  /** An integer from 0 up. */
  natural(name: string, otherwise: number): number {
    const value = this.value(name) ?? otherwise;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
      return this.fail(`${name} ${print(value)} must be a whole number, 0 or more`);
    }
    return value;
  }

  /** A number above 0. */
  number(name: string, otherwise: number): number {
    const value = this.value(name) ?? otherwise;
    if (typeof value !== "number" || !(value > 0 && value < Infinity)) {
      return this.fail(`${name} ${print(value)} must be a number above 0`);
    }
    return value;
  }

  flag(name: string, otherwise: boolean): boolean {
    const value = this.value(name) ?? otherwise;
    if (typeof value !== "boolean") {
      return this.fail(`${name} ${print(value)} must be true or false`);
    }
    return value;
  }

  /** A field of which one value alone has a counterpart in a model. */
  only(name: string, known: boolean | number | string, missing: string): void {
    const value = this.value(name) ?? known;
    if (value === known) return;
    this.fail(`${name} ${print(value)}: ${missing}; only ${print(known)} is read`);
  }

  /** The fields of a group that must be there. */
  group(name: string): ConfigFields {
    const value = this.value(name);
    if (!isGroup(value)) return this.fail(`${name} ${print(value)} must be an object`);
    return new ConfigFields(value, `${this.#of}: ${name}`);
  }
}

/** A value as an error shows it. */
export function print(value: unknown): string {
  return value === undefined ? "(left out)" : JSON.stringify(value);
}
