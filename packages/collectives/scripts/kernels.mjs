// Compiles assembly/add.as and prints, or with --write stores, src/communicator/kernel-bytes.ts.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = join(
  dirname(createRequire(import.meta.url).resolve("assemblyscript/package.json")),
  "bin/asc.js",
);
const folder = mkdtempSync(join(tmpdir(), "trireme-kernels-"));
const out = join(folder, "add.wasm");
// AssemblyScript is not quite TypeScript, so the source has an ending of its own; the compiler asks for .ts.
copyFileSync(join(root, "assembly/add.as"), join(folder, "add.ts"));
const options =
  `--enable simd,threads --importMemory --sharedMemory --initialMemory 1 --maximumMemory 65536 --runtime stub -O3 --noAssert --outFile ${out}`.split(
    " ",
  );
const { status, stderr } = spawnSync(process.execPath, [compiler, "add.ts", ...options], {
  cwd: folder,
  encoding: "utf8",
});
if (status !== 0) throw new Error(stderr);
const lines = readFileSync(out)
  .toString("base64")
  .match(/.{1,90}/g);
rmSync(folder, { recursive: true });
const source = `/** assembly/add.as compiled to WebAssembly, base64; written by \`pnpm kernels\`. */
export const kernelBytes: string = [
${lines.map((line) => `  "${line}",`).join("\n")}
].join("");
`;
if (process.argv.includes("--write")) {
  writeFileSync(join(root, "src/communicator/kernel-bytes.ts"), source);
} else {
  process.stdout.write(source);
}
