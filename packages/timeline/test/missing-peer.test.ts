import { expect, test, vi } from "vitest";

test("without @bufbuild/protobuf Perfetto's entry names the command that installs it", async () => {
  vi.doMock("@bufbuild/protobuf", () => {
    throw new Error("not installed");
  });
  const { fromPerfetto } = await import("@trireme/timeline/perfetto");
  await expect(fromPerfetto(new Uint8Array())).rejects.toThrow(
    "@trireme/timeline/perfetto needs the package @bufbuild/protobuf; install it with: npm install @bufbuild/protobuf@2.17.0",
  );
});
