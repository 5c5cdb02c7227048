/** Bad input: one clear line for each thing that is wrong, exit code 2. */
export class InputError extends Error {
  readonly lines: readonly string[];

  constructor(lines: readonly string[], options?: ErrorOptions) {
    super(lines.join("\n"), options);
    this.name = "InputError";
    this.lines = lines;
  }
}

/** What went wrong once a run was under way: exit code 1. */
export class RunFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RunFailure";
  }
}
