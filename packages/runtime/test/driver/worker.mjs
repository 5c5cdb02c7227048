/**
 * A worker by hand, as one in another language would be written: a JSON object a line on descriptor
 * TRIREME_CHANNEL. It trains STEPS steps of STEP_MS milliseconds; each step it writes a line to LOG.
 * Files in COMMANDS named after its rank tell it to crash, exit, hang or spawn children.
 */
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { Socket } from "node:net";

const { env } = process;
const { RANK, TRIREME_GENERATION, TRIREME_STEP, STEPS = "10", STEP_MS = "10", LOG, COMMANDS } = env;
const channel = new Socket({ fd: Number(env.TRIREME_CHANNEL) });
const say = (word) => channel.write(`${JSON.stringify(word)}\n`);
const answers = createInterface(channel)[Symbol.asyncIterator]();
const commanded = (what) => {
  const file = `${COMMANDS}/${what}-${RANK}`;
  if (COMMANDS === undefined || !existsSync(file)) return false;
  rmSync(file);
  return true;
};

console.log(`rank ${RANK} of ${env.WORLD_SIZE} at ${env.MASTER_ADDR}:${env.MASTER_PORT}`);
for (let step = Number(TRIREME_STEP); step <= Number(STEPS); step++) {
  say({ kind: "begin", step });
  const { value } = await answers.next();
  if (value === undefined || JSON.parse(value).kind === "end") break;
  if (commanded("crash")) process.kill(process.pid, "SIGKILL");
  if (commanded("exit")) {
    console.error(`rank ${RANK} gives up`);
    process.exit(7);
  }
  if (commanded("declare"))
    say({ kind: "fault", scope: "host", reason: "uncorrectable ECC error" });
  if (commanded("declare-at-length"))
    say({ kind: "fault", scope: "host", reason: `ECC error${" in a frame".repeat(1000)}` });
  if (commanded("nan")) {
    channel.write(`{"kind": "metrics", "step": ${step}, "values": {"loss": NaN, "norm": 1}}\n`);
    say({ kind: "metrics", step, values: { loss: Number.NaN, scale: Infinity } });
  }
  if (commanded("babble")) channel.write("no word at all\n");
  // A child in a session of its own whose parent ends at once: only its environment tells on it.
  if (commanded("spawn")) {
    const script = "setsid sleep 1000 & sleep 1000 & exit 0";
    spawn("sh", ["-c", script], { detached: true, stdio: "ignore" }).unref();
  }
  if (commanded("hang")) process.kill(process.pid, "SIGSTOP");
  await new Promise((resolve) => {
    setTimeout(resolve, Number(STEP_MS));
  });
  if (LOG !== undefined) appendFileSync(LOG, `${TRIREME_GENERATION} ${RANK} ${step}\n`);
  say({ kind: "metrics", step, values: { loss: 1 / step } });
  say({ kind: "saved", step });
}
process.exit(0);
