import { expect, test } from "vitest";
import { compileKernels, moduleSource } from "../../../assembly/build.mjs";
import { kernelModule } from "../../../src/kernels/module.ts";

test("the checked-in kernels are what the assembly folder compiles to", async () => {
  const binary: Uint8Array = await compileKernels();
  expect(Buffer.from(binary).toString("base64") === kernelModule).toBe(true);
  expect(moduleSource(binary)).toContain(kernelModule);
});
