import { expect, it, vi } from "vitest";

it("without their peers the languages name the command that installs them, and the rest works", async () => {
  for (const name of ["yaml", "smol-toml"]) {
    vi.doMock(name, () => {
      throw new Error(`Cannot find package '${name}'`);
    });
  }
  const formats = await import("@trireme/run/formats");
  await expect(formats.parseToml("a = 1")).rejects.toThrow("npm install smol-toml@1.9.1");
  await expect(formats.formatToml({})).rejects.toThrow("npm install smol-toml@1.9.1");
  await expect(formats.parseYaml("a: 1")).rejects.toThrow("npm install yaml@2.9.1");
  await expect(formats.formatYaml({})).rejects.toThrow("npm install yaml@2.9.1");
  expect(formats.fromMegatron("--num-layers 2").unsupported).toEqual([]);
  expect(formats.fromTorchtitan({}).description).toHaveProperty("plan");
});
