import { expect, test } from "vitest";
import { type EncoderShapes, partTokens, sampleWork } from "@trireme/dataloader";

const shapes: EncoderShapes = {
  patch: 14,
  merge: 2,
  temporalPatch: 2,
  audioFrames: 50,
  audioMerge: 4,
};

test("patches, merged patches, patches of time and frames of sound become tokens", () => {
  expect(partTokens({ kind: "text", tokens: 12 }, shapes)).toEqual({ encoder: 0, backbone: 12 });
  // 224 / 14 = 16 patches a side, the ViT's 256 tokens; merged by 2 x 2, 64.
  expect(partTokens({ kind: "image", width: 224, height: 224 }, shapes)).toEqual({
    encoder: 256,
    backbone: 64,
  });
  // One pixel more begins another merged patch on that side.
  expect(partTokens({ kind: "image", width: 225, height: 224 }, shapes)).toEqual({
    encoder: 288,
    backbone: 72,
  });
  expect(partTokens({ kind: "video", width: 28, height: 28, frames: 5 }, shapes)).toEqual({
    encoder: 12,
    backbone: 3,
  });
  expect(partTokens({ kind: "audio", seconds: 1.01 }, shapes)).toEqual({
    encoder: 51,
    backbone: 13,
  });
  expect(partTokens({ kind: "image", width: 0, height: 10 }, shapes)).toEqual({
    encoder: 0,
    backbone: 0,
  });
  expect(() => partTokens({ kind: "audio", seconds: -1 }, shapes)).toThrow("audio with seconds -1");
});

test("encoders attend within a part, the backbone over all of a sample", () => {
  const quadratic = { linear: 0, quadratic: 1 };
  const image = { kind: "image", width: 224, height: 224 } as const;
  const video = { kind: "video", width: 28, height: 28, frames: 4 } as const;
  const costs = { encoder: quadratic, backbone: quadratic };
  expect(sampleWork([image, image, { kind: "text", tokens: 10 }], shapes, costs)).toEqual({
    encoder: 2 * 256 ** 2,
    backbone: 138 ** 2,
    tokens: 138,
  });
  // Two patches of time of 4 tokens each, not one of 8.
  expect(sampleWork([video], shapes, costs).encoder).toBe(2 * 4 ** 2);
  expect(sampleWork([], shapes, costs)).toEqual({ encoder: 0, backbone: 0, tokens: 0 });
});

test("encoders whose shapes are none are refused: a patch of 0 pixels would be endless tokens", () => {
  for (const change of [
    { patch: 0 },
    { merge: NaN },
    { audioFrames: -1 },
    { audioMerge: Infinity },
  ]) {
    const [[name, value] = []] = Object.entries(change);
    expect(() =>
      partTokens({ kind: "image", width: 8, height: 8 }, { ...shapes, ...change }),
    ).toThrow(`an encoder with ${name} ${value}`);
  }
});
