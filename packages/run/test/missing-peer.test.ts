import { expect, test, vi } from "vitest";

test("without yaml its entry names the command that installs it", async () => {
  vi.doMock("yaml", () => {
    throw new Error("not installed");
  });
  await expect(import("@trireme/run/yaml")).rejects.toThrow(
    "@trireme/run/yaml needs the package yaml; install it with: npm install yaml@2.9.1",
  );
});
