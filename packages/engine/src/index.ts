export {
  type EmbeddedRuntime,
  type EmbeddedRuntimeOptions,
  embeddedRuntime,
} from "./embedded-runtime.ts";
export { type MeasureOptions, measureOperators } from "./measure.ts";
