import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { bundle } from "../driver/bundle.ts";
import { newCast, portOf } from "../driver/take-over.ts";

/** CPU seconds of a process so far: utime and stime of /proc, in ticks of 1/100 s. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

it("a driver and an agent that wait take no more than 2 % of a core each", async () => {
  const [driverFile, agentFile] = await bundle("driver-main", "agent-main");
  const cast = newCast({ driver: driverFile!, agent: agentFile! });
  try {
    const driver = cast.driver(0, { hosts: 3, heartbeat: 1, joinDeadline: 1000 });
    const port = await portOf(driver);
    // Two of three hosts: the rendezvous waits, as heartbeats go on.
    const agents = [0, 1].map((host) => cast.agent(host, [port], 1));
    await driver.until(({ kind, host }) => kind === "join" && host === 1, "a host to join");
    const pids = [driver, ...agents].map(({ process: { pid } }) => pid!);
    await new Promise((resolve) => {
      setTimeout(resolve, 2000);
    });
    const before = pids.map(cpuOf);
    const seconds = 10;
    await new Promise((resolve) => {
      setTimeout(resolve, seconds * 1000);
    });
    const shares = pids.map((pid, i) => (cpuOf(pid) - before[i]!) / seconds);
    console.info("share of a core: driver, agent, agent", shares);
    expect(Math.max(...shares)).toBeLessThan(0.02);
  } finally {
    await cast.end();
  }
});
