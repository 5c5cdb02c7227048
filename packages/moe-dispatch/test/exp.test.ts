import { expect, test } from "vitest";
import { softmaxScores, sigmoidScores } from "@trireme/moe-dispatch";
import { normals } from "./naive.ts";

test("scores are right to the last bits over the whole range of logits", () => {
  for (const spread of [1e-3, 1, 30, 200]) {
    const logits = normals(4000, 1).map((x) => x * spread);
    const scores = softmaxScores(logits, 4);
    const sigmoids = sigmoidScores(logits, 4);
    for (let t = 0; t < 1000; t++) {
      const row = [...logits.subarray(t * 4, t * 4 + 4)];
      const largest = Math.max(...row);
      const total = row.reduce((sum, l) => sum + Math.exp(l - largest), 0);
      const s = row.map((l) => 1 / (1 + Math.exp(-l)));
      const sum = s.reduce((a, b) => a + b, 0);
      row.forEach((l, e) => {
        // A few roundings of 2.2e-16 each, relative to the value; below 1e-300 the rest is lost.
        const [p, q] = [Math.exp(l - largest) / total, s[e]! / sum];
        expect(Math.abs(scores[t * 4 + e]! - p)).toBeLessThanOrEqual(3e-15 * p + 1e-300);
        expect(Math.abs(sigmoids[t * 4 + e]! - q)).toBeLessThanOrEqual(3e-15 * q + 1e-300);
      });
    }
  }
});
