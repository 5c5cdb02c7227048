/** The kernels' exports; src/kernels/kernels.ts documents them for TypeScript. Sizes are elements, pointers bytes. */
export { adamw } from "./adamw";
export { attentionBackward } from "./attention-backward";
export { attentionForward } from "./attention-forward";
export { attentionWorkspace } from "./attention-shape";
export { addBias, biasGradient } from "./bias";
export { crossEntropy, crossEntropyLoss } from "./cross-entropy";
export { accumulate, add, copy, fill, scale, sumSquares } from "./elementwise";
export { embeddingBackward, embeddingForward } from "./embedding";
export { geluBackward, geluForward } from "./gelu";
export { gemm, gemmWorkspace } from "./gemm";
export { layerNormBackward, layerNormForward } from "./layer-norm";
export { rmsNormBackward, rmsNormForward } from "./rms-norm";
export { rotary } from "./rotary";
export { swigluBackward, swigluForward } from "./swiglu";
