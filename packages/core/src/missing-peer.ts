/** What a subpath that leans on an optional library says where that is not installed. */
import { TriremeError } from "./error.ts";

/**
 * For the failed import of a library that a user of `entry` ("@trireme/dataloader/s3") installs: throws
 * TriremeError "PEER" with the command.
 */
export function missingPeer(
  entry: string,
  library: string,
  version: string,
): (cause: unknown) => never {
  return (cause) => {
    throw new TriremeError(
      "PEER",
      `${entry} needs the package ${library}; install it with: npm install ${library}@${version}`,
      { cause },
    );
  };
}
