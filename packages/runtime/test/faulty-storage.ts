/**
 * A storage that fails, or dies, at a call of its choice, before or after the call has its effect. Death
 * is for good: no later call has any effect. A write that dies has half of its bytes on the disk.
 */
import type { FileOperation } from "@trireme/checkpoint";
import type { CheckpointStorage } from "@trireme/runtime";

export type Fault = "fails-before" | "fails-after" | "dies-before" | "dies-halfway" | "dies-after";

export const faults: readonly Fault[] = [
  "fails-before",
  "fails-after",
  "dies-before",
  "dies-halfway",
  "dies-after",
];

export class FaultyStorage implements CheckpointStorage {
  readonly renames: boolean;
  /** Calls so far, of any kind. */
  calls = 0;
  /** What was asked for, one word a call. */
  readonly log: string[] = [];
  readonly #inner: CheckpointStorage;
  readonly #fault: Fault | undefined;
  readonly #at: number;
  #dead = false;

  constructor(inner: CheckpointStorage, fault?: Fault, at = 0) {
    this.#inner = inner;
    this.renames = inner.renames;
    this.#fault = fault;
    this.#at = at;
  }

  execute(operation: FileOperation): Promise<void> {
    const half =
      operation.kind === "write"
        ? { ...operation, bytes: operation.bytes.subarray(0, operation.bytes.length >> 1) }
        : undefined;
    return this.#call(
      operation.kind,
      () => this.#inner.execute(operation),
      () => (half === undefined ? Promise.resolve() : this.#inner.execute(half)),
    );
  }

  list(path: string): Promise<readonly string[]> {
    return this.#call("list", () => this.#inner.list(path));
  }

  files(path: string): Promise<readonly { readonly name: string; readonly size: number }[]> {
    return this.#call("files", () => this.#inner.files(path));
  }

  read(path: string, offset: number, target: Uint8Array): Promise<void> {
    return this.#call("read", () => this.#inner.read(path, offset, target));
  }

  async #call<T>(kind: string, act: () => Promise<T>, half?: () => Promise<void>): Promise<T> {
    if (this.#dead) throw new Error("the process is dead");
    this.log.push(kind);
    if (this.#fault === undefined || this.calls++ !== this.#at) return act();
    this.#dead = this.#fault.startsWith("dies");
    if (this.#fault.endsWith("after")) await act();
    if (this.#fault === "dies-halfway") await half?.();
    throw new Error("EIO: i/o error");
  }
}
