/** The driver of a replayed history, as a process that is told each of its inputs. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { ScriptLine } from "./scripted-driver-main.ts";

/** A queue of what has come, and of who waits for it. */
export class Inbox<Word> {
  readonly #words: Word[] = [];
  #waiting: { resolve: (word: Word) => void; timer: NodeJS.Timeout } | undefined;

  push(word: Word): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#words.push(word);
    else {
      clearTimeout(waiting.timer);
      waiting.resolve(word);
    }
  }

  take(what: string): Promise<Word> {
    const word = this.#words.shift();
    if (word !== undefined) return Promise.resolve(word);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited 20 s for ${what}`)), 20_000);
      this.#waiting = { resolve, timer };
    });
  }

  drain(): Word[] {
    return this.#words.splice(0);
  }
}

interface DriverWord {
  readonly kind: "ready" | "lead" | "record" | "done";
  readonly port?: number;
  readonly record?: string;
}

/** A driver that does what it is told, line by line, and says what it decided. */
export class DriverProcess {
  readonly words: Inbox<DriverWord> = new Inbox();
  readonly records: Inbox<string> = new Inbox();
  readonly #child;
  readonly #gone: Promise<unknown>;

  constructor(file: string, options: object) {
    this.#child = spawn(process.execPath, [file, JSON.stringify(options)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#gone = new Promise((resolve) => {
      this.#child.once("exit", resolve);
    });
    createInterface(this.#child.stdout).on("line", (line) => {
      const word: DriverWord = JSON.parse(line);
      if (word.kind === "record") this.records.push(word.record!);
      else this.words.push(word);
    });
  }

  write(line: ScriptLine): void {
    this.#child.stdin.write(`${JSON.stringify(line)}\n`);
  }

  async do(line: ScriptLine): Promise<void> {
    this.write(line);
    await this.words.take(`the driver to take ${JSON.stringify(line)}`);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }
}
