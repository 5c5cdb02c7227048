import { standbyPool } from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

describe("published figures", () => {
  it("hold 2, 2, 3 and 4 standbys for 128, 256, 512 and 1,024 machines (ByteRobust, table 5)", () => {
    for (const probability of [0.001_17, 0.0012, 0.001_25]) {
      const pools = [128, 256, 512, 1024].map((hosts) => standbyPool({ hosts, probability }));
      expect(pools).toEqual([2, 2, 3, 4]);
    }
    expect(standbyPool({ hosts: 0, probability: 0.5 })).toBe(0);
    expect(standbyPool({ hosts: 7, probability: 1 })).toBe(7);
  });
});
