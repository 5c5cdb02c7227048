export {
  type PrometheusOptions,
  type PrometheusServer,
  servePrometheus,
} from "./serve-prometheus.ts";
