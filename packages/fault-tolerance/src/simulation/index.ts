export { type History, type HistoryOptions, playScript, simulateHistory } from "./history.ts";
export { type Replay, replayTrace } from "./replay.ts";
export { type HistoryScript, type Mishap, drawScript } from "./script.ts";
export type { ControllerFactory, ControllerLike, Input, TraceEntry } from "./seat.ts";
export { type RuleName, RuleBroken } from "./witness.ts";
export { type Incident, type Symptom, incidentOf } from "./incident.ts";
export {
  type GenerationSpan,
  type Pace,
  type Restart,
  type RunDecision,
  type RunInput,
  type RunSummary,
  type RunTimes,
  playRun,
} from "./run-input.ts";
export { type Stretch } from "./progress.ts";
