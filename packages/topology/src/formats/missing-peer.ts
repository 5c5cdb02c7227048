import { TriremeError } from "@trireme/core";

/** For the failed import of a library that a user of this entry installs: says the command. */
export function missingPeer(library: string, version: string): (cause: unknown) => never {
  return (cause) => {
    throw new TriremeError(
      "PEER",
      `@trireme/topology/formats needs the package ${library}; install it with: npm install ${library}@${version}`,
      { cause },
    );
  };
}
