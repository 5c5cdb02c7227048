import { expect, test } from "vitest";
import { compileModule, moduleSource, modules } from "../../../assembly/build.mjs";
import { fusedModule } from "../../../src/kernels/fused-module.ts";
import { kernelModule } from "../../../src/kernels/module.ts";

test.each([
  ["kernels", kernelModule],
  ["fused", fusedModule],
] as const)(
  "the checked-in module of %s is what the folder compiles to",
  async (key, checkedIn) => {
    const binary: Uint8Array = await compileModule(modules[key]);
    expect(Buffer.from(binary).toString("base64") === checkedIn).toBe(true);
    expect(moduleSource(binary, modules[key])).toContain(checkedIn);
  },
);
