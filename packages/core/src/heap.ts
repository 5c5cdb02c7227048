/** Binary min-heap ordered by `less`; items that are equal under it leave in no stated order. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #less: (a: T, b: T) => boolean;

  constructor(less: (a: T, b: T) => boolean) {
    this.#less = less;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The least item, without taking it; undefined when empty. */
  peek(): T | undefined {
    return this.#items[0];
  }

  push(value: T): void {
    const a = this.#items;
    let i = a.push(value) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (!this.#less(value, a[up]!)) break;
      a[i] = a[up]!;
      i = up;
    }
    a[i] = value;
  }

  /** Takes the least item; undefined when empty. */
  pop(): T | undefined {
    const a = this.#items;
    const top = a[0];
    const last = a.pop();
    if (a.length === 0 || last === undefined) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= a.length) break;
      if (child + 1 < a.length && this.#less(a[child + 1]!, a[child]!)) child++;
      if (!this.#less(a[child]!, last)) break;
      a[i] = a[child]!;
      i = child;
    }
    a[i] = last;
    return top;
  }
}
