import { describe, expect, it } from "vitest";
import { bundle } from "../driver/bundle.ts";
import { noEtcd, startEtcd } from "../driver/etcd-server.ts";
import { newCast, portOf } from "../driver/take-over.ts";

describe.skipIf(noEtcd)("a driver whose journal is in etcd", () => {
  it("that is stopped is taken over when its lease ends, and steps down when it goes on", async () => {
    const [driverFile, agentFile] = await bundle("driver-main", "agent-main");
    const etcd = await startEtcd();
    const cast = newCast({ driver: driverFile!, agent: agentFile! });
    const ports = [1, 2].map((each) => 20_000 + (process.pid % 12_000) + each);
    try {
      const first = cast.driver(ports[0]!, { etcd: etcd.address });
      await portOf(first);
      const second = cast.driver(ports[1]!, { etcd: etcd.address });
      for (const host of [0, 1]) cast.agent(host, ports, 1500);
      await first.until(({ kind }) => kind === "progress", "progress");
      // Neither dead nor alive: its sockets are open, and its lease runs out.
      first.process.kill("SIGSTOP");
      await portOf(second);
      await second.until(({ kind }) => kind === "progress", "progress under the second");
      const before = first.said.length;
      first.process.kill("SIGCONT");
      const { reason } = await first.until(({ kind }) => kind === "stepped-down", "its end");
      expect(reason).toContain("this driver leads no more");
      const after = first.said.slice(before).map(({ kind }) => kind);
      for (const decision of ["launch", "halt", "evict", "progress", "end"]) {
        expect(after).not.toContain(decision);
      }
      second.process.kill("SIGTERM");
      const end = await second.until(({ kind }) => kind === "result", "the end");
      expect(end["result"]).toMatchObject({ ok: true });
      // The workers have been of one generation throughout.
      expect(new Set(cast.job.steps().map(([generation]) => generation))).toEqual(new Set([1]));
    } finally {
      await cast.end();
      etcd.stop();
    }
  });
});
