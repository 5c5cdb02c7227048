export {
  type EmbeddedRuntime,
  type EmbeddedRuntimeOptions,
  embeddedRuntime,
} from "./embedded-runtime.ts";
export { checkPlan } from "./supported-plan.ts";
export { type MeasuredLink, measureLink } from "./measure-link.ts";
export { type MeasureOptions, measureOperators } from "./measure.ts";
