/** A map from non-negative numbers to 32-bit integers in typed arrays, for millions of entries. */
export class NumberMap {
  #keys: Float64Array;
  #values: Int32Array;
  #size = 0;

  constructor(capacity: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(8, capacity * 2)));
    this.#keys = new Float64Array(slots).fill(-1);
    this.#values = new Int32Array(slots);
  }

  /** The value of a key, or `missing`. */
  get(key: number, missing: number): number {
    const slot = this.#slot(key);
    return this.#keys[slot] === key ? this.#values[slot]! : missing;
  }

  set(key: number, value: number): void {
    const slot = this.#slot(key);
    if (this.#keys[slot] !== key) {
      if (++this.#size * 2 > this.#keys.length) {
        this.#grow();
        this.#size++;
        const place = this.#slot(key);
        this.#keys[place] = key;
        this.#values[place] = value;
        return;
      }
      this.#keys[slot] = key;
    }
    this.#values[slot] = value;
  }

  #slot(key: number): number {
    const mask = this.#keys.length - 1;
    // Low and high part mixed: keys are often multiples of one number.
    let slot =
      (Math.imul(key % 4294967291, 0x9e3779b1) ^
        Math.imul(Math.floor(key / 65_536), 0x85ebca6b)) >>>
      7;
    for (slot &= mask; ; slot = (slot + 1) & mask) {
      const found = this.#keys[slot];
      if (found === key || found === -1) return slot;
    }
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#keys = new Float64Array(keys.length * 2).fill(-1);
    this.#values = new Int32Array(keys.length * 2);
    this.#size = 0;
    for (let i = 0; i < keys.length; i++) if (keys[i]! >= 0) this.set(keys[i]!, values[i]!);
  }
}
