/** The kernels' exports; src/kernels/kernels.ts documents them for TypeScript. Sizes are elements, pointers bytes. */
export { adamw } from "./adamw";
export { attendBackward, attentionBackward } from "./attention-backward";
export { attendForward, attentionForward } from "./attention-forward";
export { attentionMerge } from "./attention-merge";
export { attentionWorkspace } from "./attention-shape";
export { addBias, biasGradient } from "./bias";
export { crossEntropy, crossEntropyLoss } from "./cross-entropy";
export { accumulate, add, copy, copyRows, fill, scale, sumSquares } from "./elementwise";
export { embeddingBackward, embeddingForward } from "./embedding";
export { geluBackward, geluForward } from "./gelu";
export { gemm, gemmWorkspace } from "./gemm";
export { layerNormBackward, layerNormForward } from "./layer-norm";
export { rmsNormBackward, rmsNormForward } from "./rms-norm";
export { rotary } from "./rotary";
export { swigluBackward, swigluForward } from "./swiglu";
export { vocabLossGradient, vocabLossPart, vocabLossTotal } from "./vocab-loss";
export { combineRows, combineWeightsGradient, spreadRows } from "./token-rows";
export { absMax, fromBf16, roundBlocksTo, roundTo, toBf16 } from "./low-precision";
