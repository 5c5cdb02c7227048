import { isBuiltin } from "node:module";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { type Plugin, build } from "vite";
import { beforeAll, describe, expect, test } from "vitest";
import { againstDist, packages, root, sourceCondition } from "./workspace.ts";

/** Packages that run real work: theirs are threads, files and processes. */
const hostOnly = new Set(["runtime", "engine", "engine-torch"]);
/** What the `.` entry of a package may import from outside the workspace. */
const allowed: Readonly<Record<string, readonly string[]>> = { run: ["zod"] };
/** Packages above the floors that must be free of dependencies. */
const upper = new Set(["simulator", "planner"]);

interface Bundle {
  readonly code: string;
  /** `specifier` from `importer`, for every import that is no file and no package of the workspace. */
  readonly outside: readonly { readonly specifier: string; readonly importer: string }[];
}

/** The package of an import: "zod" of "zod/v4", "@a/b" of "@a/b/c". */
const packageOf = (specifier: string) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;

/** Bundles an entry of a package, its `.` where none is named, as a page would, and notes what it takes from elsewhere. */
async function bundle(
  name: string,
  entry = "index",
  format: "iife" | "es" = "iife",
): Promise<Bundle> {
  const outside: { specifier: string; importer: string }[] = [];
  const note: Plugin = {
    name: "note-imports",
    enforce: "pre",
    resolveId(specifier, importer = "") {
      // Not a file, not one of the bundler's own modules, not of the workspace.
      const bare = !["/", ".", "\0", "@trireme/"].some((start) => specifier.startsWith(start));
      // What a dependency imports in turn is the dependency's affair, unless it is of Node.
      const ours = !importer.includes("node_modules");
      if (bare && (ours || isBuiltin(specifier))) {
        outside.push({ specifier, importer: importer.replace(`${root}/`, "") });
      }
      return null;
    },
  };
  const folder = join(root, "packages", name);
  const result = await build({
    configFile: false,
    root: folder,
    logLevel: "silent",
    plugins: [note],
    resolve: { conditions: [...(againstDist ? [] : [sourceCondition]), "module", "browser"] },
    build: {
      write: false,
      minify: false,
      lib: {
        entry: join(folder, againstDist ? `dist/${entry}.js` : `src/${entry}.ts`),
        formats: [format],
        name: "trireme",
      },
    },
  });
  const [output] = Array.isArray(result) ? result : [result];
  if (output === undefined || !("output" in output)) throw new Error(`${name}: no bundle was made`);
  const chunks = output.output.flatMap((part) => (part.type === "chunk" ? [part.code] : []));
  return { code: chunks.join("\n"), outside };
}

test("the check sees an import of Node where there is one", async () => {
  // Libraries that may be missing are awaited, which a classic script cannot do.
  const { outside } = await bundle("dataloader", "node/index", "es");
  expect(outside.map(({ specifier }) => specifier)).toContain("node:fs/promises");
});

describe.each(packages.filter((name) => !hostOnly.has(name)))("%s in a browser", (name) => {
  let made: Bundle;
  beforeAll(async () => {
    made = await bundle(name);
  }, 60_000);

  test("imports nothing of Node", () => {
    expect(made.outside.filter(({ specifier }) => isBuiltin(specifier))).toEqual([]);
  });

  test.skipIf(upper.has(name))("imports nothing from outside the workspace but what it may", () => {
    const may = allowed[name] ?? [];
    expect(made.outside.filter(({ specifier }) => !may.includes(packageOf(specifier)))).toEqual([]);
  });

  test("loads where there is nothing but the language and the web", () => {
    // No process, Buffer, require or timers; WebAssembly comes with the language of a new context.
    const page = createContext({ TextEncoder, TextDecoder, URL });
    runInContext(`${made.code}\nglobalThis.keys = Object.keys(trireme).length;`, page);
    expect(page["keys"]).toBeGreaterThan(0);
    expect(made.code).not.toMatch(/\bBuffer\.|\bprocess\.|\b__dirname\b|\brequire\(/);
  });
});
