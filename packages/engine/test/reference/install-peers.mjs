/**
 * Installs what tests and benchmarks compare the engine with, about 1 GB, out of the way of the
 * workspace: PyTorch for CPUs in a virtual environment, TensorFlow.js with its WebAssembly backend.
 * `pnpm --filter @trireme/engine run peers`
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { peerDirectory } from "./peer-directory.mjs";

const run = (command, ...args) =>
  execFileSync(command, args, { cwd: peerDirectory, stdio: "inherit" });

mkdirSync(peerDirectory, { recursive: true });

const manifest = { name: "trireme-peers", private: true };
writeFileSync(join(peerDirectory, "package.json"), JSON.stringify(manifest));
const tensorflow = ["@tensorflow/tfjs", "@tensorflow/tfjs-backend-wasm"];
run("npm", "install", "--no-audit", "--no-fund", ...tensorflow.map((name) => `${name}@4.22.0`));

const python = join(peerDirectory, "python", "bin", "python");
if (!existsSync(python)) run(process.env.PYTHON ?? "python3", "-m", "venv", "python");
run(python, "-m", "pip", "install", "--quiet", "torch==2.13.0");
