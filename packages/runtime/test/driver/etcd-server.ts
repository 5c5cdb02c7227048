/** A real etcd on loopback, for as long as a test needs it. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Etcd3 } from "etcd3";

const program = "etcd";

/** Debian has it as etcd-server. Where there is none, the tests that need it say that they were skipped. */
export const noEtcd: boolean = spawnSync(program, ["--version"]).error !== undefined;

export interface EtcdServer {
  readonly address: string;
  stop(): void;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}

export async function startEtcd(): Promise<EtcdServer> {
  const directory = mkdtempSync(join(tmpdir(), "trireme-etcd-"));
  const address = `http://127.0.0.1:${await freePort()}`;
  const peers = `http://127.0.0.1:${await freePort()}`;
  const server = spawn(
    program,
    ["--data-dir", directory, "--log-level", "error"].concat(
      ["--listen-client-urls", address, "--advertise-client-urls", address],
      ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers],
      ["--initial-cluster", `default=${peers}`],
    ),
    { stdio: "ignore" },
  );
  const probe = new Etcd3({ hosts: address });
  for (let tries = 0; ; tries++) {
    try {
      await probe.get("up").exists();
      break;
    } catch (error) {
      if (tries > 100) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
    }
  }
  probe.close();
  return {
    address,
    stop() {
      server.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
