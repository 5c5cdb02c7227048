/**
 * Compiles the kernels and writes their bytes, as base64, into src/kernels/module.ts, which is
 * checked in: users and workers need neither the compiler nor a file next to the code. The products
 * with fused multiply-adds go into fused-module.ts likewise. `node assembly/build.mjs` writes;
 * `compileModule()` only returns the bytes (the tests use it to see that the checked-in ones are
 * current).
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** What is compiled, with which features of WebAssembly, and how it is checked in. */
export const modules = {
  kernels: { entry: "index.ts", features: "simd,threads", file: "module.ts", name: "kernelModule" },
  fused: {
    entry: "index.ts",
    features: "simd,threads,relaxed-simd",
    file: "fused-module.ts",
    name: "fusedModule",
  },
};

/** @returns {Promise<Uint8Array>} the module's bytes */
export async function compileModule({ entry, features }) {
  let binary;
  let messages = "";
  const { error } = await asc.main(
    [
      entry,
      "--outFile",
      "kernels.wasm",
      "--baseDir",
      folder,
      "--enable",
      features,
      "--importMemory",
      "--sharedMemory",
      "--maximumMemory",
      "65536",
      "--noExportMemory",
      "--runtime",
      "stub",
      "--use",
      "abort=",
      "--noAssert",
      "-O3",
      "--converge",
    ],
    {
      // Sources end in .as, because AssemblyScript is not quite TypeScript (it has decorated
      // functions) and tools that read .ts stumble over it; the compiler asks for .ts.
      readFile: (name, base) =>
        readFile(new URL(name.replace(/\.ts$/, ".as"), `file://${base}/`), "utf8").catch(
          () => null,
        ),
      stderr: {
        write: (text) => {
          messages += String(text);
        },
      },
      writeFile: (name, contents) => {
        if (name === "kernels.wasm") binary = contents;
      },
    },
  );
  if (error !== null || binary === undefined) throw new Error(messages, { cause: error });
  return binary;
}

/** @returns {string} the text of the TypeScript file that holds the bytes */
export function moduleSource(binary, { name }) {
  const base64 = Buffer.from(binary).toString("base64");
  return `/** ${binary.length} bytes of WebAssembly in base64: made by assembly/build.mjs, not by hand. */
export const ${name}: string =
  "${base64}";
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const module of Object.values(modules)) {
    const binary = await compileModule(module);
    const target = new URL(`../src/kernels/${module.file}`, import.meta.url);
    await writeFile(target, moduleSource(binary, module));
    process.stdout.write(`${module.file}: ${binary.length} bytes of kernels\n`);
  }
}
