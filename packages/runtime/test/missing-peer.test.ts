import { afterEach, expect, test, vi } from "vitest";

const peers = [
  ["s3", () => import("@trireme/runtime/s3"), "@aws-sdk/client-s3", "@aws-sdk/client-s3@3.1175.0"],
  ["prometheus", () => import("@trireme/runtime/prometheus"), "prom-client", "prom-client@15.1.3"],
  [
    "opentelemetry",
    () => import("@trireme/runtime/opentelemetry"),
    "@opentelemetry/sdk-metrics",
    "@opentelemetry/sdk-metrics@2.12.1",
  ],
  [
    "opentelemetry",
    () => import("@trireme/runtime/opentelemetry"),
    "@opentelemetry/exporter-metrics-otlp-http",
    "@opentelemetry/exporter-metrics-otlp-http@0.223.0",
  ],
  [
    "tensorboard",
    () => import("@trireme/runtime/tensorboard"),
    "@bufbuild/protobuf/wire",
    "@bufbuild/protobuf@2.17.0",
  ],
] as const;

afterEach(() => {
  vi.resetModules();
  for (const [, , module] of peers) vi.doUnmock(module);
});

test.each(peers)(
  "without its library %s names the command that installs it",
  async (entry, load, module, installed) => {
    vi.resetModules();
    vi.doMock(module, () => {
      throw new Error("not installed");
    });
    const library = installed.slice(0, installed.lastIndexOf("@"));
    await expect(load()).rejects.toThrow(
      `@trireme/runtime/${entry} needs the package ${library}; install it with: npm install ${installed}`,
    );
  },
);
