import { expect, test, vi } from "vitest";

test("without ml-random-forest the regressors' entry names the command that installs it", async () => {
  vi.doMock("ml-random-forest", () => {
    throw new Error("not installed");
  });
  await expect(import("@trireme/cost-model/regress")).rejects.toThrow(
    "@trireme/cost-model/regress needs the package ml-random-forest; install it with: npm install ml-random-forest@2.1.0",
  );
});
