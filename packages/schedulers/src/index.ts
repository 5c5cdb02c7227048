export {
  type Action,
  type ActionKind,
  actionKinds,
  kindCode,
  parseAction,
  parseActions,
  printAction,
  printActions,
} from "./action.ts";
export { type Schedule, actionAt, actionCount, actionsOf } from "./schedule.ts";
export { type SingleStageOptions, gpipe } from "./gpipe.ts";
export { oneForwardOneBackward } from "./one-forward-one-backward.ts";
export { type InterleavedOptions, interleaved } from "./interleaved.ts";
export { type CreateScheduleOptions, createSchedule, scheduleNames } from "./create-schedule.ts";
export {
  type Rule,
  type ValidateOptions,
  type Validation,
  type Violation,
  validate,
} from "./validate.ts";
export { lower } from "./lower.ts";
export { addSendReceive } from "./send-receive.ts";
export { type Communication, type Cost, type Replay, type ReplayCosts, replay } from "./replay.ts";
export { type MultiStageOptions, loopedBfs } from "./looped-bfs.ts";
export { interleavedZeroBubble, zbH1, zbH2 } from "./zero-bubble.ts";
export { zbV } from "./zb-v.ts";
export { chimera } from "./chimera.ts";
export { dualPipe, dualPipeV } from "./dual-pipe.ts";
export { vHalf, vHalfBlock, vMin, vMinBlock } from "./controllable-memory.ts";
export { deepSpeedBuffers, deepSpeedInference, deepSpeedTrain } from "./deepspeed.ts";
export { dfsBfs } from "./dfs-bfs.ts";
export { forwardOnly } from "./forward-only.ts";
export { type LowerOptions } from "./lower.ts";
export { addEarlySendReceive } from "./send-receive-early.ts";
export { addReduceGrad, addUnshardReshard, weightPriorities } from "./weight-actions.ts";
export { mergeBackward } from "./merge-backward.ts";
export { slotCount, withSlots } from "./slots.ts";
export { type ParseScheduleOptions, parseSchedule, printSchedule } from "./csv.ts";
export {
  type AutomaticOptions,
  type AutomaticResult,
  automaticZeroBubble,
} from "./search/automatic.ts";
export {
  type Candidate,
  type SearchOptions,
  type SearchResult,
  searchSchedule,
} from "./search/search.ts";
export {
  type LayoutOptions,
  type StageLayout,
  chunksOfRank,
  expandLayout,
  layersOfStage,
  parseLayout,
  printLayout,
} from "./layout.ts";
export { type UniformLayoutOptions, uniformLayout } from "./uniform-layout.ts";
export { type Balance, type BalanceOptions, balanceStages } from "./partition.ts";
export { type ArrangeOptions, type StageDevice, arrangeDevices } from "./arrange.ts";
export { type AnchoredSchedule, anchorEncoder } from "./encoder-anchors.ts";
export { type EncoderWork } from "./encoder-work.ts";
export { type ScheduleSpan, spansOf } from "./spans.ts";
export {
  type SvgPictureOptions,
  type TextPictureOptions,
  svgPicture,
  textPicture,
} from "./picture.ts";
export { type Explanation, explain, printExplanation } from "./explain.ts";
export {
  type PassTimes,
  type VocabularyOptions,
  addVocabulary,
} from "./vocabulary/add-vocabulary.ts";
export {
  type VocabularyReplay,
  type VocabularyReplayCosts,
  replayVocabulary,
} from "./vocabulary/replay-vocabulary.ts";
export { validateVocabulary } from "./vocabulary/validate-vocabulary.ts";
export {
  type VocabularySchedule,
  entryCode,
  vocabularyRow,
} from "./vocabulary/vocabulary-schedule.ts";
export { type VocabularyExchanges } from "./vocabulary/vocabulary-state.ts";
