/** A terminal that keeps what is written to it. */
import type { Terminal } from "../src/terminal.ts";

export class Capture implements Terminal {
  stdout = "";
  stderr = "";
  readonly columns: number;
  readonly liveColumns: number;
  readonly live: boolean;
  readonly styled = false;

  constructor(options: { readonly columns?: number; readonly live?: boolean } = {}) {
    this.columns = options.columns ?? 80;
    this.liveColumns = this.columns;
    this.live = options.live ?? false;
  }

  out(text: string): void {
    this.stdout += text;
  }

  error(text: string): void {
    this.stderr += text;
  }
}

/** Letters of the widest line. */
export function widest(text: string): number {
  return Math.max(...text.split("\n").map((line) => Array.from(line).length));
}
