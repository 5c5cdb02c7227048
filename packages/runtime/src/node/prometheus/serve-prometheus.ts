/** An endpoint that Prometheus scrapes, by prom-client. */
import { createServer } from "node:http";
import { TriremeError, missingPeer } from "@trireme/core";
import {
  type CounterName,
  type MetricName,
  counters,
  countsOf,
  metrics,
  metricsOf,
  stepsDone,
} from "../../metrics/fields.ts";
import type { MetricSink } from "../json-lines.ts";

const { Counter, Gauge, Registry } = await import("prom-client").catch(
  missingPeer("@trireme/runtime/prometheus", "prom-client", "15.1.3"),
);

/** Where it listens, and what it says of itself. */
export interface PrometheusOptions {
  /** Default a free one. */
  readonly port?: number;
  /** Default loopback; "0.0.0.0" lets others in, without a password. */
  readonly host?: string;
  /** Labels of every metric, such as the run's name. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** A server that answers `GET /metrics`. */
export interface PrometheusServer extends MetricSink {
  /** Where it is: "http://127.0.0.1:9464/metrics". */
  readonly url: string;
}

/**
 * Starts the endpoint; it keeps no process alive.
 * @throws TriremeError "LISTEN" where the port cannot be had.
 */
export async function servePrometheus(options: PrometheusOptions = {}): Promise<PrometheusServer> {
  const { port = 0, host = "127.0.0.1", labels = {} } = options;
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  const registers = [registry];
  const step = new Gauge({ name: "trireme_step", help: "steps done", registers });
  const gauges = new Map(
    Object.entries(metrics).map(([name, help]) => [
      name,
      new Gauge({ name: `trireme_${name}`, help, registers }),
    ]),
  );
  const totals = new Map(
    Object.entries(counters).map(([name, help]) => [
      name,
      new Counter({ name: `trireme_${name}_total`, help, registers }),
    ]),
  );
  const server = createServer((request, response) => {
    // A stranger may ask for anything: "//" is no URL, and must not end the process.
    const [path] = (request.url ?? "/").split("?", 1);
    if (request.method !== "GET" || path !== "/metrics") {
      response.writeHead(404).end("only GET /metrics\n");
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { "Content-Type": registry.contentType }).end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  }).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("LISTEN", `cannot listen on ${host}:${port}: ${why}`, { cause });
  });
  server.unref();
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}/metrics`,
    record(event) {
      step.set(stepsDone(event));
      for (const { name, value } of metricsOf(event)) gaugeOf(gauges, name).set(value);
      for (const { name, by } of countsOf(event)) gaugeOf(totals, name).inc(by);
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Every name of the table has one. */
function gaugeOf<T>(made: ReadonlyMap<string, T>, name: MetricName | CounterName): T {
  return made.get(name)!;
}
