export { openTelemetryMetrics } from "./metrics.ts";
export { type OtlpOptions, otlpMetrics } from "./otlp.ts";
