/** Metrics pushed to a collector over OTLP/HTTP, by OpenTelemetry's own SDK. */
import { TriremeError, missingPeer } from "@trireme/core";
import type { Attributes } from "@opentelemetry/api";
import type { Seconds } from "@trireme/core";
import type { MetricSink } from "../json-lines.ts";
import { openTelemetryMetrics } from "./metrics.ts";

const { MeterProvider, PeriodicExportingMetricReader } =
  await import("@opentelemetry/sdk-metrics").catch(
    missingPeer("@trireme/runtime/opentelemetry", "@opentelemetry/sdk-metrics", "2.12.1"),
  );
const { OTLPMetricExporter } = await import("@opentelemetry/exporter-metrics-otlp-http").catch(
  missingPeer(
    "@trireme/runtime/opentelemetry",
    "@opentelemetry/exporter-metrics-otlp-http",
    "0.223.0",
  ),
);

/** Where the collector is. */
export interface OtlpOptions {
  /** Default the standard one on this machine, "http://127.0.0.1:4318/v1/metrics". */
  readonly url?: string;
  /** Between two pushes; default 10 s. */
  readonly interval?: Seconds;
  /** Sent with every request, such as a token. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Go with every value, such as the run's name. */
  readonly attributes?: Attributes;
}

/**
 * A sink that pushes every so often, and once more when it is closed.
 * @throws TriremeError "RANGE" for an interval that is none.
 */
export function otlpMetrics(options: OtlpOptions = {}): MetricSink {
  const { url = "http://127.0.0.1:4318/v1/metrics", interval = 10, headers = {} } = options;
  if (!(interval > 0 && interval < Infinity)) {
    throw new TriremeError(
      "RANGE",
      `interval ${interval} s must be above 0, and finite; 10 is usual`,
    );
  }
  const exporter = new OTLPMetricExporter({ url, headers });
  const milliseconds = Math.max(1, Math.round(interval * 1e3));
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: milliseconds,
    exportTimeoutMillis: milliseconds,
  });
  const provider = new MeterProvider({ readers: [reader] });
  const record = openTelemetryMetrics(provider.getMeter("trireme"), options.attributes);
  return { record, close: () => provider.shutdown() };
}
