import { expect, test, vi } from "vitest";

test("without @bufbuild/protobuf the Chakra entry names the command that installs it", async () => {
  vi.doMock("@bufbuild/protobuf/wire", () => {
    throw new Error("not installed");
  });
  await expect(import("@trireme/simulator/chakra")).rejects.toThrow(
    "@trireme/simulator/chakra needs the package @bufbuild/protobuf; install it with: npm install @bufbuild/protobuf@2.17.0",
  );
});
