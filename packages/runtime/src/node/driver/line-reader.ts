/** Lines of a byte stream, each cut at a greatest length: a program that never ends its line must not fill the memory. */
import { StringDecoder } from "node:string_decoder";

export class LineReader {
  readonly #decoder = new StringDecoder("utf8");
  readonly #longest: number;
  readonly #line: (line: string) => void;
  #held = "";
  /** Whether the line at hand was cut, so that its rest goes nowhere. */
  #skipping = false;

  /** @param longest Characters kept of a line. */
  constructor(longest: number, line: (line: string) => void) {
    this.#longest = longest;
    this.#line = line;
  }

  push(piece: Buffer): void {
    const parts = this.#decoder.write(piece).split("\n");
    const rest = parts.pop() ?? "";
    for (const part of parts) {
      this.#take(part);
      this.#emit();
    }
    this.#take(rest);
  }

  /** The last line, where it was not ended. */
  end(): void {
    this.#take(this.#decoder.end());
    if (this.#held !== "") this.#emit();
  }

  #take(part: string): void {
    if (this.#skipping) return;
    this.#held += part;
    if (this.#held.length <= this.#longest) return;
    this.#held = `${this.#held.slice(0, this.#longest)}…`;
    this.#skipping = true;
  }

  #emit(): void {
    const line = this.#held.endsWith("\r") ? this.#held.slice(0, -1) : this.#held;
    this.#held = "";
    this.#skipping = false;
    this.#line(line);
  }
}
