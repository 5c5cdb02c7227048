import { TriremeError } from "@trireme/core";

/** A file that is not what it should be: which file, which line (from 1), and why. */
export class FormatError extends TriremeError {
  readonly file: string;
  readonly line: number;
  readonly reason: string;

  constructor(file: string, line: number, reason: string, options?: ErrorOptions) {
    super("FORMAT", `${file}:${line}: ${reason}`, options);
    this.name = "FormatError";
    this.file = file;
    this.line = line;
    this.reason = reason;
  }
}
