import { hours } from "@trireme/core";
import { expect, it } from "vitest";

import { base, decisions, incidents } from "../run-cases.ts";

it("runs with an incident every seven minutes are decided alike, elided and in full", () => {
  for (let seed = 0; seed < 200; seed++) {
    const { options, times, ...rest } = base(seed);
    const input = {
      ...rest,
      options: {
        ...options,
        hosts: Array.from({ length: 12 }, (_, host) => host),
        standbys: [12, 13, 14],
        minimum: 4,
      },
      times: { ...times, step: 5 },
      horizon: hours(3),
      incidents: incidents(seed, 15, 25, hours(3)),
    };
    expect(decisions(input)).toEqual(decisions({ ...input, transport: "full" }));
  }
});
