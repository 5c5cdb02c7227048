/**
 * Compiles the kernels and writes their bytes, as base64, into src/kernels/module.ts, which is
 * checked in: users and workers need neither the compiler nor a file next to the code.
 * `node assembly/build.mjs` writes; `compileKernels()` only returns the bytes (the tests use it to
 * see that the checked-in ones are current).
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

const folder = fileURLToPath(new URL(".", import.meta.url));
const target = new URL("../src/kernels/module.ts", import.meta.url);

/** @returns {Promise<Uint8Array>} the module's bytes */
export async function compileKernels() {
  let binary;
  let messages = "";
  const { error } = await asc.main(
    [
      "index.ts",
      "--outFile",
      "kernels.wasm",
      "--baseDir",
      folder,
      "--enable",
      "simd,threads",
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

/** @param {Uint8Array} binary @returns {string} the text of src/kernels/module.ts */
export function moduleSource(binary) {
  const base64 = Buffer.from(binary).toString("base64");
  return `/** The compiled kernels, ${binary.length} bytes of WebAssembly in base64: made by assembly/build.mjs, not by hand. */
export const kernelModule: string =
  "${base64}";
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const binary = await compileKernels();
  await writeFile(target, moduleSource(binary));
  process.stdout.write(`${binary.length} bytes of kernels\n`);
}
