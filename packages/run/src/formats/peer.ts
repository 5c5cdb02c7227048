/** Optional peer dependencies: a missing one is refused with the command that installs it. */
import { TriremeError } from "@trireme/core";

/**
 * A library that only one entry needs, once its import settles.
 * @param entry What needs it, e.g. `@trireme/run/formats`.
 * @param installed Package and version as npm takes them, e.g. `yaml@2.9.1`.
 * @param imported `import("yaml")`, written out so that bundlers see it.
 * @throws TriremeError "PEER" with the install command.
 */
export async function peer<T>(entry: string, installed: string, imported: Promise<T>): Promise<T> {
  try {
    return await imported;
  } catch (error) {
    const name = installed.slice(0, installed.lastIndexOf("@"));
    const message = `${entry} needs the package ${name}; install it with: npm install ${installed}`;
    throw new TriremeError("PEER", message, { cause: error });
  }
}
