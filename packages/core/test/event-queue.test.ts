import fc from "fast-check";
import { expect, test } from "vitest";
import { EventQueue, createRng } from "@trireme/core";

test("events come in order of time, and in order of entry where times are equal", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9 })), (times) => {
      const queue = new EventQueue(1);
      times.forEach((time, i) => queue.push(time, i));
      const out: number[] = [];
      while (queue.size > 0) {
        out.push(queue.pop());
        expect(queue.now).toBe(times[out.at(-1)!]);
      }
      const order = times.map((_, i) => i).sort((a, b) => times[a]! - times[b]! || a - b);
      expect(out).toEqual(order);
    }),
  );
});

test("events entered while it runs keep the order", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 5 }))), (moves) => {
      const queue = new EventQueue(2);
      const waiting: { time: number; id: number }[] = [];
      let id = 0;
      for (const [take, delay] of moves) {
        if (take && waiting.length > 0) {
          waiting.sort((a, b) => a.time - b.time || a.id - b.id);
          expect(queue.next).toBe(waiting[0]!.time);
          expect(queue.pop()).toBe(waiting.shift()!.id);
        } else {
          waiting.push({ time: queue.now + delay, id });
          queue.push(queue.now + delay, id++);
        }
      }
      expect(queue.size).toBe(waiting.length);
    }),
  );
});

test("many times at once, seldom and often alike, keep the order", () => {
  // More times wait than the table knows, so that some have several lists.
  for (const times of [3, 1000, 50_000]) {
    const rng = createRng(times);
    const queue = new EventQueue();
    const entered = new Float64Array(100_000);
    let id = 0;
    let last = -1;
    let wrong = 0;
    const enter = (): void => {
      entered[id] = queue.now + rng.integer(times) / 1024;
      queue.push(entered[id]!, id++);
    };
    for (let i = 0; i < 20_000; i++) enter();
    while (queue.size > 0) {
      const before = queue.now;
      const got = queue.pop();
      const inOrder = queue.now > before || (queue.now === before && got > last);
      if (queue.now !== entered[got] || !inOrder) wrong++;
      last = got;
      if (id < entered.length) enter();
    }
    expect([id, wrong]).toEqual([entered.length, 0]);
  }
});

test("an event in the past, a time that is no number and an empty queue are refused", () => {
  const queue = new EventQueue();
  queue.push(2, 0);
  queue.pop();
  expect(() => queue.push(1, 0)).toThrow("event at 1 s, but the clock is at 2 s");
  expect(() => queue.push(Number.NaN, 0)).toThrow("NaN");
  expect(() => queue.pop()).toThrow("empty");
  expect(queue.next).toBe(Infinity);
});
