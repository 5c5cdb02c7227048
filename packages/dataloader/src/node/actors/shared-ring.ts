/** A ring in shared memory, for ranks on threads of the loader's process. */
import { type Ring, type RingRef, type RingShape, type RingStatus, ringStatuses } from "./ring.ts";

/** Words of control: written, status, changes, then taken by each reader. */
const [writtenAt, statusAt, changesAt, takenAt] = [0, 1, 2, 3] as const;

/** `Atomics.waitAsync`, which the library of ES2023 does not declare. */
interface WaitAsync {
  waitAsync(
    array: Int32Array,
    index: number,
    value: number,
    ms: number,
  ): { readonly async: boolean; readonly value: Promise<string> | string };
}

/** Makes a ring; memory that is not written to is not taken from the machine. */
export function createSharedRing(shape: RingShape): RingRef {
  const words = takenAt + shape.readers.length + shape.slots * (1 + shape.slotWords);
  return { ...shape, kind: "shared", buffer: new SharedArrayBuffer(4 * words) };
}

/** A ring over a shared buffer. */
export class SharedRing implements Ring {
  readonly shape: RingShape;
  readonly #control: Int32Array;
  readonly #slots: Int32Array;

  constructor(ref: RingRef & { readonly kind: "shared" }) {
    this.shape = ref;
    const control = takenAt + ref.readers.length;
    this.#control = new Int32Array(ref.buffer, 0, control);
    this.#slots = new Int32Array(ref.buffer, 4 * control);
  }

  written(): number {
    return Atomics.load(this.#control, writtenAt);
  }

  taken(reader: number): number {
    return Atomics.load(this.#control, takenAt + reader);
  }

  status(): RingStatus {
    return ringStatuses[Atomics.load(this.#control, statusAt)]!;
  }

  write(words: number, fill: (frame: Int32Array) => void): void {
    const slot = this.#slot(this.written());
    slot[0] = words;
    fill(slot.subarray(1, 1 + words));
    this.#count(writtenAt);
  }

  take(reader: number): Int32Array {
    const slot = this.#slot(this.taken(reader));
    const frame = slot.slice(1, 1 + slot[0]!);
    this.#count(takenAt + reader);
    return frame;
  }

  close(status: "ended" | "failed"): void {
    Atomics.store(this.#control, statusAt, ringStatuses.indexOf(status));
    this.#wake();
  }

  changes(): number {
    return Atomics.load(this.#control, changesAt);
  }

  async changed(seen: number, ms: number): Promise<void> {
    // Nothing else may keep the thread alive, or wake it, while it waits.
    const awake = setTimeout(() => undefined, ms);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node has had it since version 16
    const atomics = Atomics as unknown as WaitAsync;
    const wait = atomics.waitAsync(this.#control, changesAt, seen, ms);
    if (wait.async) await wait.value;
    clearTimeout(awake);
  }

  release(): void {
    // The memory goes with its last holder.
  }

  #slot(frame: number): Int32Array {
    const { slots, slotWords } = this.shape;
    // A slot begins with the length of its frame.
    const at = (frame % slots) * (1 + slotWords);
    return this.#slots.subarray(at, at + 1 + slotWords);
  }

  #count(at: number): void {
    Atomics.add(this.#control, at, 1);
    this.#wake();
  }

  #wake(): void {
    Atomics.add(this.#control, changesAt, 1);
    Atomics.notify(this.#control, changesAt);
  }
}
