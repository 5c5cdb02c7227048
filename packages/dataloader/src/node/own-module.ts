/** Modules of this package that run on threads or in processes of their own, as built and from the sources. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/** Where such a module is. */
export interface OwnModule {
  readonly url: URL;
  /** In the sources: the module of tsx under `entry` of it. Node 20 runs no TypeScript by itself. */
  readonly tsx: ((entry: "esm" | "esm/api") => string) | undefined;
}

/** Condition under which the packages of this repository are their sources. */
export const sourceCondition = "--conditions=@trireme/source";

/** `<name>-main` of this folder, by the ending that this module has: `.js` when built. */
export function ownModule(name: string): OwnModule {
  const source = import.meta.url.endsWith(".ts");
  const url = new URL(`./${name}-main${source ? ".ts" : ".js"}`, import.meta.url);
  return { url, tsx: source ? tsxModule : undefined };
}

function tsxModule(entry: "esm" | "esm/api"): string {
  const path = createRequire(import.meta.url).resolve(`tsx/${entry}`);
  return pathToFileURL(path.replace(/\.cjs$/, ".mjs")).href;
}
