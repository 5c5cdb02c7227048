/** Programs of the tests as single files, so that a process of one starts in a moment. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Plugin, build } from "vite";
import { afterAll } from "vitest";

const made: string[] = [];
afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});

/** Bundles files of this folder, from the sources or from dist as the tests themselves; their paths. */
export function bundle(...names: readonly string[]): Promise<readonly string[]> {
  const file = (name: string): string => fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  return bundleInputs(Object.fromEntries(names.map((name) => [name, file(name)])));
}

/** Bundles a program given as its text. */
export async function bundleCode(code: string): Promise<string> {
  const id = fileURLToPath(new URL("program.ts", import.meta.url));
  const program: Plugin = {
    name: "program",
    resolveId: (source) => (source === id ? id : undefined),
    load: (source) => (source === id ? code : undefined),
  };
  const [file] = await bundleInputs({ program: id }, [program]);
  return file!;
}

async function bundleInputs(
  input: Readonly<Record<string, string>>,
  plugins: readonly Plugin[] = [],
): Promise<readonly string[]> {
  // Inside the package, so that what is not bundled is found.
  const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
  const outDir = mkdtempSync(join(modules, ".bundle-"));
  made.push(outDir);
  const own = process.env["TEST_DIST"] ? [] : ["@trireme/source"];
  await build({
    configFile: false,
    logLevel: "error",
    plugins: [...plugins],
    // The client of etcd reads files beside its own.
    ssr: {
      noExternal: true,
      external: ["etcd3"],
      resolve: { conditions: [...own, "module", "node"] },
    },
    build: { ssr: true, outDir, emptyOutDir: false, minify: false, rollupOptions: { input } },
  });
  return Object.keys(input).map((name) => join(outDir, `${name}.js`));
}
