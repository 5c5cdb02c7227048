import fc from "fast-check";
import { expect, test } from "vitest";
import { EventQueue } from "@trireme/core";

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

test("an event in the past, a time that is no number and an empty queue are refused", () => {
  const queue = new EventQueue();
  queue.push(2, 0);
  queue.pop();
  expect(() => queue.push(1, 0)).toThrow("event at 1 s, but the clock is at 2 s");
  expect(() => queue.push(Number.NaN, 0)).toThrow("NaN");
  expect(() => queue.pop()).toThrow("empty");
  expect(queue.next).toBe(Infinity);
});
