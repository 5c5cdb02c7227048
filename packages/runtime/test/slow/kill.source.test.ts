import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { createRng } from "@trireme/core";
import { fileStore } from "@trireme/runtime/node";
import { expect, test } from "vitest";
import { stateOf } from "./state-of.ts";

const script = fileURLToPath(new URL("saving-process.ts", import.meta.url));

type Saving = ChildProcessByStdio<null, Readable, null>;

async function startSaving(directory: string): Promise<Saving> {
  const argv = ["--conditions=@trireme/source", "--import", "tsx", script, directory];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] });
  const died = once(child, "exit").then(([code]) => {
    throw new Error(`the process ended with ${code} before it saved anything`);
  });
  await Promise.race([once(child.stdout, "data"), died]);
  died.catch(() => undefined);
  return child;
}

test("a process killed with SIGKILL while it saves leaves the newest complete checkpoint, and the next goes on from it", async () => {
  const root = mkdtempSync(join(tmpdir(), "trireme-kill-"));
  const rng = createRng(11);
  try {
    let before = 0;
    let leftovers = 0;
    for (let kill = 0; kill < 8; kill++) {
      const child = await startSaving(root);
      await new Promise((resolve) => setTimeout(resolve, 150 + rng.float() * 150));
      child.kill("SIGKILL");
      await once(child, "exit");
      if (readdirSync(root).some((name) => name.startsWith("."))) leftovers++;
      const store = fileStore(root);
      const newest = (await store.newest()) ?? 0;
      expect(newest).toBeGreaterThanOrEqual(before);
      before = newest;
      if (newest === 0) continue;
      const { files } = await store.load(newest);
      for (const [i, { name, bytes }] of stateOf(newest).files.entries()) {
        expect(files[i]!.name).toBe(name);
        expect(Buffer.compare(files[i]!.bytes, bytes)).toBe(0);
      }
    }
    // Most kills fall into the middle of a save; were there none, nothing would have been shown.
    expect(leftovers).toBeGreaterThan(1);
    expect(before).toBeGreaterThan(1);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
