/** A file that is not what its format says: which file, where in it, and what is wrong there. */
import { TriremeError } from "@trireme/core";

/** Thrown by every reader of a format; its code is "FORMAT". */
export class FormatError extends TriremeError {
  /** Path or name of the file. */
  readonly file: string;
  /** Offset in bytes of what is wrong; undefined where it is the file as a whole. */
  readonly offset: number | undefined;

  constructor(file: string, offset: number | undefined, reason: string, options?: ErrorOptions) {
    super(
      "FORMAT",
      `${file}${offset === undefined ? "" : ` at byte ${offset}`}: ${reason}`,
      options,
    );
    this.name = "FormatError";
    this.file = file;
    this.offset = offset;
  }
}
