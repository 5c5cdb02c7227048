export {
  type ForestOptions,
  type RegressedProfile,
  regressedPricer,
  regressOperators,
} from "./forest.ts";
export { type HardwareProfile, type ProfilePricerOptions } from "../calibration/calibrate.ts";
