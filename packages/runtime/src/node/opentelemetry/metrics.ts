/** Events of a run as OpenTelemetry metrics, on any meter: the application chooses where they go. */
import type { Attributes, Counter, Gauge, Meter } from "@opentelemetry/api";
import type { RunEvent } from "../../event.ts";
import {
  type CounterName,
  type MetricName,
  counters,
  countsOf,
  metrics,
  metricsOf,
  stepsDone,
} from "../../metrics/fields.ts";

/** Units as UCUM has them, which OpenTelemetry asks for. */
const units: Readonly<Partial<Record<MetricName | CounterName, string>>> = {
  step_seconds: "s",
  tokens_per_second: "{token}/s",
  checkpoint_bytes: "By",
  tokens: "{token}",
  steps: "{step}",
};

/**
 * Makes the instruments (`trireme.loss`, …, counters such as `trireme.tokens`) and returns what
 * `RunLoopOptions.on` takes. `attributes` go with every value.
 */
export function openTelemetryMetrics(
  meter: Meter,
  attributes: Attributes = {},
): (event: RunEvent) => void {
  const option = (name: MetricName | CounterName, description: string): object => {
    const unit = units[name];
    return unit === undefined ? { description } : { description, unit };
  };
  const gauges = new Map<MetricName, Gauge>();
  const totals = new Map<CounterName, Counter>();
  const step = meter.createGauge("trireme.step", { description: "steps done", unit: "{step}" });
  return (event) => {
    step.record(stepsDone(event), attributes);
    for (const { name, value } of metricsOf(event)) {
      const known = gauges.get(name);
      const gauge = known ?? meter.createGauge(`trireme.${name}`, option(name, metrics[name]));
      if (known === undefined) gauges.set(name, gauge);
      gauge.record(value, attributes);
    }
    for (const { name, by } of countsOf(event)) {
      const known = totals.get(name);
      const counter = known ?? meter.createCounter(`trireme.${name}`, option(name, counters[name]));
      if (known === undefined) totals.set(name, counter);
      counter.add(by, attributes);
    }
  };
}
