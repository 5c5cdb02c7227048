// Compiles assembly/*.as and prints, or with --write stores, the files of bytes that the sources import.
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
const shared =
  "--enable threads --importMemory --sharedMemory --initialMemory 1 --maximumMemory 65536";
const modules = [
  { name: "add", memory: shared, to: "src/communicator/kernel-bytes.ts", as: "kernelBytes" },
  {
    name: "compress",
    memory: "--initialMemory 16 --maximumMemory 16",
    to: "src/compression/compress-bytes.ts",
    as: "compressBytes",
  },
];
const folder = mkdtempSync(join(tmpdir(), "trireme-kernels-"));
// AssemblyScript is not quite TypeScript, so the sources have an ending of their own; the compiler asks for .ts.
for (const name of ["bf16", ...modules.map((module) => module.name)]) {
  copyFileSync(join(root, `assembly/${name}.as`), join(folder, `${name}.ts`));
}
for (const { name, memory, to, as } of modules) {
  const out = join(folder, `${name}.wasm`);
  const options = `--enable simd ${memory} --runtime stub -O3 --noAssert --outFile ${out}`;
  const { status, stderr } = spawnSync(
    process.execPath,
    [compiler, `${name}.ts`, ...options.split(" ")],
    { cwd: folder, encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  const lines = readFileSync(out)
    .toString("base64")
    .match(/.{1,90}/g);
  const source = `/** assembly/${name}.as compiled to WebAssembly, base64; written by \`pnpm kernels\`. */
export const ${as}: string = [
${lines.map((line) => `  "${line}",`).join("\n")}
].join("");
`;
  if (process.argv.includes("--write")) writeFileSync(join(root, to), source);
  else process.stdout.write(source);
}
rmSync(folder, { recursive: true });
