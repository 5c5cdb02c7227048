import { afterEach, expect, test, vi } from "vitest";

afterEach(() => {
  vi.resetModules();
  vi.doUnmock("saxes");
  vi.doUnmock("yaml");
});

test.each([
  ["saxes", "6.0.0"],
  ["yaml", "2.9.1"],
])("without %s the entry of formats names the command that installs it", async (name, version) => {
  vi.resetModules();
  vi.doMock(name, () => {
    throw new Error("not installed");
  });
  await expect(import("@trireme/topology/formats")).rejects.toThrow(
    `@trireme/topology/formats needs the package ${name}; install it with: npm install ${name}@${version}`,
  );
});
