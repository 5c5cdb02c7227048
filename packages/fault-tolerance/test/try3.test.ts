import { it } from "vitest";
import { createRng, days, hours } from "@trireme/core";
import { playRun } from "@trireme/fault-tolerance/simulation";
import { decisions, base, incidents } from "./run.test.ts";
it("x", () => {
  let bads = 0;
  for (let seed = 0; seed < 300; seed++) {
    const b = base(seed);
    const input = {
      ...b,
      options: {
        ...b.options,
        hosts: Array.from({ length: 12 }, (_, i) => i),
        standbys: [12, 13, 14],
        minimum: 4,
      },
      times: { ...b.times, step: 5 },
      horizon: hours(3),
      incidents: incidents(seed, 15, 25, hours(3)),
    };
    const e = decisions(input as any),
      f = decisions({ ...input, transport: "full" } as any);
    const show = (d: any) =>
      d && JSON.stringify({ at: d.at, ...d.record, evicted: [...d.record.evicted] });
    let bad = -1;
    for (let i = 0; i < Math.max(e.log.length, f.log.length) && bad < 0; i++)
      if (show(e.log[i]) !== show(f.log[i])) bad = i;
    if (bad < 0 && JSON.stringify(e.end) !== JSON.stringify(f.end)) {
      console.log(
        seed,
        "end",
        JSON.stringify(e.end.spans.at(-1)),
        JSON.stringify(f.end.spans.at(-1)),
        e.end.productive,
        f.end.productive,
        e.end.end,
        f.end.end,
      );
      bads++;
    }
    if (bad >= 0 && bads++ < 3) {
      console.log("seed", seed, "bad", bad, "\nE", show(e.log[bad]), "\nF", show(f.log[bad]));
      const t = f.log[bad]?.at ?? e.log[bad]!.at;
      console.log(
        input.incidents
          .filter((x: any) => Math.abs(x.time - t) < 300)
          .map((x: any) => JSON.stringify(x))
          .join("\n"),
      );
    }
  }
  console.log("bad", bads);
});
it("y", () => {
  const rng = createRng(1);
  const n = 2048;
  const inc: any[] = [];
  for (let t = 0; ;) {
    t += -Math.log(1 - rng.float()) * ((54 * 86400) / 419);
    if (t > days(54)) break;
    const u = rng.float();
    inc.push({
      time: t,
      symptom: u < 0.7 ? "evidence" : u < 0.8 ? "silence" : "software",
      hosts: [rng.integer(n)],
      detect: 60,
    });
  }
  const input = {
    options: {
      hosts: Array.from({ length: n }, (_, i) => i),
      standbys: [n, n + 1, n + 2, n + 3],
      deadline: 60,
      minimum: 1900,
      unit: 16,
    },
    times: {
      heartbeat: 10,
      step: 10,
      checkpoint: { every: 60, write: 2, durable: 60 },
      leave: 20,
      start: 300,
      repair: days(1),
    },
    incidents: inc,
    horizon: days(54),
  };
  for (let k = 0; k < 3; k++) {
    const t = process.cpuUsage();
    let c = 0;
    const s = playRun({ ...input, on: () => c++ });
    console.log(
      process.cpuUsage(t).user / 1e6,
      inc.length,
      c,
      s.ettr,
      s.record.phase,
      s.spans.length,
    );
  }
});
