import { RunError, applyOverrides, parseOverride } from "@trireme/run";
import { describe, expect, it } from "vitest";

const set = (description: unknown, ...texts: string[]): unknown =>
  applyOverrides(description, texts.map(parseOverride));

describe("an override", () => {
  it.each([
    ["plan.tp=8", 8],
    ["plan.recompute=full", "full"],
    ["plan.tp= true ", true],
    ['a="8"', "8"],
    ["a=[1, 2]", [1, 2]],
    ["a=80 GiB", "80 GiB"],
    ["a=1e-3", 0.001],
    ["a=x=y", "x=y"],
    ["a=", ""],
    ["a=null", undefined],
  ])("%s has the value that is written", (text, value) => {
    expect(parseOverride(text).value).toEqual(value);
  });

  it.each(["plan.tp", "=8", "a..b=1", ".a=1", "a.=1", "a[x]=1", ""])("%j is refused", (text) => {
    expect(() => parseOverride(text)).toThrow(/must be path=value; for example plan\.tp=8/);
  });

  it("changes a copy and keeps the order of keys", () => {
    const description = { a: { x: 1, y: 2 }, b: 3 };
    const changed = set(description, "a.x=9", "a.z=5", "b=4");
    expect(JSON.stringify(changed)).toBe('{"a":{"x":9,"y":2,"z":5},"b":4}');
    expect(description).toEqual({ a: { x: 1, y: 2 }, b: 3 });
  });

  it("makes groups on the way and removes keys", () => {
    expect(set(undefined, "a.b.c=1")).toEqual({ a: { b: { c: 1 } } });
    expect(set({ a: 1, b: 2 }, "a=null")).toEqual({ b: 2 });
  });

  it("makes no holes in lists, however far past their end a position is", () => {
    expect(set({ a: [1] }, "a[1]=2")).toEqual({ a: [1, 2] });
    expect(() => set({ a: [1, 2] }, "a[100000000]=3")).toThrow(
      "a[100000000] = 3: a has the positions 0 to 1; a[2] adds one",
    );
    expect(() => set({ a: [] }, "a[1]=3")).toThrow("a[1] = 3: a is empty; a[0] adds one");
  });

  it("reaches into lists", () => {
    expect(set({ a: [1, { b: 2 }] }, "a[1].b=3", "a[0]=9")).toEqual({ a: [9, { b: 3 }] });
  });

  it("turns a section written as one word into the group it is short for", () => {
    expect(set({ model: "gpt2" }, "model.layers=4")).toEqual({
      model: { preset: "gpt2", layers: 4 },
    });
    expect(set({ cluster: "dgx-h100" }, "cluster.hosts=4")).toEqual({
      cluster: { host: "dgx-h100", hosts: 4 },
    });
  });

  it("through a value without keys is refused", () => {
    expect(() => set({ steps: 3 }, "steps.x=1")).toThrow(RunError);
    expect(() => set({ plan: "auto" }, "plan.tp=1")).toThrow(/plan\.tp cannot be set/);
  });

  it("cannot reach the prototype", () => {
    const changed = set({}, "__proto__.polluted=1");
    expect(Object.hasOwn(Object(changed), "__proto__")).toBe(true);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});
