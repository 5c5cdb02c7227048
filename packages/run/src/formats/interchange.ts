/** What importing and exporting another project's configuration comes to: nothing is dropped silently. */

/** A setting that the other side cannot say. */
export interface Unsupported {
  /** Its name where it was written. */
  readonly option: string;
  readonly value: unknown;
  /** Why, or what is assumed instead. */
  readonly reason: string;
}

/** A configuration read. */
export interface Imported {
  /** For `defineRun`, usually with more added: these files seldom say on what hardware they run. */
  readonly description: Readonly<Record<string, unknown>>;
  readonly unsupported: readonly Unsupported[];
}

/** An object without its undefined entries; undefined when nothing is left. */
export function present(
  section: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | undefined {
  const entries = Object.entries(section).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** What a table says of a name that a file gives; "constructor" is one like any other. */
export function entry<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
}
