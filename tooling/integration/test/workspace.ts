/** The workspace as the tests of it see it. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

/** Folder names of the packages there are. */
export const packages: readonly string[] = readdirSync(join(root, "packages"))
  .filter((name) => existsSync(join(root, "packages", name, "package.json")))
  .sort();

/** Whether the tests are to run against what is published, not the sources. */
export const againstDist = Boolean(process.env["TEST_DIST"]);

/** The condition under which packages resolve to their sources. */
export const sourceCondition = "@trireme/source";
