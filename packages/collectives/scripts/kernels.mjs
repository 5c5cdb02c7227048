// Compiles assembly/add.ts and prints, or with --write stores, src/communicator/kernel-bytes.ts.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
const options = [
  ...["--enable", "simd,threads", "--importMemory", "--sharedMemory", "--initialMemory", "1"],
  ...["--maximumMemory", "65536", "--runtime", "stub", "-O3", "--noAssert", "--outFile", out],
];
const { status, stderr } = spawnSync(process.execPath, [compiler, "assembly/add.ts", ...options], {
  cwd: root,
  encoding: "utf8",
});
if (status !== 0) throw new Error(stderr);
const lines = readFileSync(out)
  .toString("base64")
  .match(/.{1,90}/g);
rmSync(folder, { recursive: true });
const source = `/** assembly/add.ts compiled to WebAssembly, base64; written by \`pnpm kernels\`. */
export const kernelBytes: string = [
${lines.map((line) => `  "${line}",`).join("\n")}
].join("");
`;
if (process.argv.includes("--write")) {
  writeFileSync(join(root, "src/communicator/kernel-bytes.ts"), source);
} else {
  process.stdout.write(source);
}
