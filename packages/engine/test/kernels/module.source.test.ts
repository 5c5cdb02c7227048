import { expect, test } from "vitest";
import { kernelMemoryDescriptor } from "../../src/kernels/kernels.ts";
import { kernelModule } from "../../src/kernels/module.ts";

const bytes = Buffer.from(kernelModule, "base64");

test("the module imports a shared memory and nothing else, and writes no data into it", () => {
  const module = new WebAssembly.Module(bytes);
  expect(WebAssembly.Module.imports(module)).toEqual([
    { module: "env", name: "memory", kind: "memory" },
  ]);
  const memory = new WebAssembly.Memory(kernelMemoryDescriptor(1));
  const instance = new WebAssembly.Instance(module, { env: { memory } });
  expect(Object.keys(instance.exports).length).toBeGreaterThan(20);
  expect(new Uint8Array(memory.buffer).every((byte) => byte === 0)).toBe(true);
});

test("a descriptor gives room for the bytes asked for, at least a page", () => {
  expect([0, 1, 65_536, 65_537].map((n) => kernelMemoryDescriptor(n).initial)).toEqual([
    1, 1, 1, 2,
  ]);
  expect(kernelMemoryDescriptor(2 ** 32)).toEqual({
    initial: 65_536,
    maximum: 65_536,
    shared: true,
  });
});
