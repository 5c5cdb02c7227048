import {
  type AgentReport,
  parseAgentMessage,
  parseDriverMessage,
  planLaunch,
  rankEnvironment,
  takeBound,
} from "@trireme/runtime/driver";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const report: AgentReport = {
  kind: "report",
  host: 1,
  incarnation: "a",
  generation: 2,
  begun: true,
  done: 4,
  saved: 3,
  failures: [{ kind: "exit", rank: 5, code: 1 }],
  finished: false,
  endpoint: { address: "10.0.0.1", port: 29_500 },
};

describe("messages", () => {
  it("come through as they were", () => {
    expect(parseAgentMessage(JSON.stringify(report))).toEqual(report);
    const answer = {
      kind: "answer",
      order: { kind: "train", generation: 2, step: 4, skip: 1, version: 2 },
      launch: planLaunch(2, [{ host: 0, ranks: 8, endpoint: report.endpoint }]),
      stop: { kind: "after", step: 9 },
    };
    expect(parseDriverMessage(JSON.stringify(answer))).toEqual(answer);
  });

  it.each([
    ["", "is not JSON"],
    ["[]", "message: "],
    ['{"kind":"dance"}', "kind: "],
    [JSON.stringify({ ...report, host: -1 }), "host: "],
    [JSON.stringify({ ...report, host: 1.5 }), "host: "],
    [JSON.stringify({ ...report, done: 2 ** 60 }), "done: "],
    [JSON.stringify({ ...report, more: 1 }), 'Unrecognized key: "more"'],
    [JSON.stringify({ ...report, endpoint: { address: "a", port: 70_000 } }), "endpoint.port: "],
    [JSON.stringify({ ...report, incarnation: "x".repeat(300) }), "incarnation: "],
    [JSON.stringify({ ...report, failures: Array(65).fill(report.failures[0]) }), "failures: "],
  ])("are refused where they do not fit: %s", (text, message) => {
    expect(() => parseAgentMessage(text)).toThrow(message);
  });

  it("that are random JSON are refused in one line and never crash", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        for (const parse of [parseAgentMessage, parseDriverMessage]) {
          expect(() => parse(text)).toThrow(/^a message [^\n]*$/);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("a launch", () => {
  const endpoint = (host: number) => ({ address: `10.0.0.${host}`, port: 29_000 + host });
  const launch = planLaunch(3, [
    { host: 4, ranks: 2, endpoint: endpoint(4) },
    { host: 1, ranks: 3, endpoint: endpoint(1) },
  ]);

  it("deals the ranks in the order of the hosts, and the first is the master", () => {
    expect(launch.world).toBe(5);
    expect(launch.master).toEqual(endpoint(4));
    expect(launch.members.map(({ firstRank }) => firstRank)).toEqual([0, 2]);
    expect(() => planLaunch(1, [])).toThrow("generation 1 has no host");
  });

  it("gives each rank the environment that torchrun gives", () => {
    expect(rankEnvironment({ run: "r", launch, host: 1, localRank: 2, step: 7 })).toEqual({
      RANK: "4",
      LOCAL_RANK: "2",
      GROUP_RANK: "1",
      ROLE_RANK: "4",
      ROLE_NAME: "default",
      WORLD_SIZE: "5",
      LOCAL_WORLD_SIZE: "3",
      GROUP_WORLD_SIZE: "2",
      ROLE_WORLD_SIZE: "5",
      MASTER_ADDR: "10.0.0.4",
      MASTER_PORT: "29004",
      TORCHELASTIC_RUN_ID: "r",
      TORCHELASTIC_RESTART_COUNT: "2",
      TORCHELASTIC_USE_AGENT_STORE: "False",
      TRIREME_RUN: "r",
      TRIREME_HOST: "1",
      TRIREME_GENERATION: "3",
      TRIREME_STEP: "7",
      TRIREME_SKIP: "0",
      TRIREME_VERSION: "0",
    });
    expect(() => rankEnvironment({ run: "r", launch, host: 1, localRank: 3, step: 7 })).toThrow(
      "host 1 has no local rank 3 in generation 3 (host 4: 2, host 1: 3)",
    );
  });
});

describe("the agreement on a stop", () => {
  it("is the greatest bound, once every member has told one, in any order and any number of times", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1000), { minLength: 1, maxLength: 8 }),
        fc.infiniteStream(fc.nat(7)),
        (bounds, speakers) => {
          const members = bounds.map((_, host) => host);
          let agreement = takeBound({ generation: 1, bounds: new Map() }, members, 99, 1e6);
          const told = new Set<number>();
          for (const speaker of speakers) {
            const host = speaker % bounds.length;
            // Told again, a bound may have grown no further: a host that holds does not move.
            agreement = takeBound(agreement, members, host, bounds[host]!);
            told.add(host);
            if (told.size < bounds.length) expect(agreement.step).toBeUndefined();
            else break;
          }
          expect(agreement.step).toBe(Math.max(...bounds));
          expect(takeBound(agreement, members, 0, 1e6)).toBe(agreement);
        },
      ),
    );
  });
});
