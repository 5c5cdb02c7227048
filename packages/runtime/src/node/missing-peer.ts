import { TriremeError } from "@trireme/core";

/** For the failed import of a library that a user of the entry installs: says the command. */
export function missingPeer(
  entry: string,
  library: string,
  version: string,
): (cause: unknown) => never {
  return (cause) => {
    throw new TriremeError(
      "PEER",
      `@trireme/runtime/${entry} needs the package ${library}; install it with: npm install ${library}@${version}`,
      { cause },
    );
  };
}
