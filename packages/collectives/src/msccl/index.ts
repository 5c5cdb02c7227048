export {
  type BufferName,
  type MscclBlock,
  type MscclCollective,
  type MscclGpu,
  type MscclProgram,
  type MscclStep,
  type StepType,
  checkMsccl,
  mscclLimits,
} from "./program.ts";
export { parseMsccl, printMsccl } from "./parse.ts";
export { type MscclVerification, verifyMsccl } from "./verify.ts";
export { mscclFromPlan } from "./from-plan.ts";
