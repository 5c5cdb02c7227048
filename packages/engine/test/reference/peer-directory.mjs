/** Where what tests and benchmarks compare the engine with is installed; nothing else needs it. */
import { fileURLToPath } from "node:url";

export const peerDirectory = fileURLToPath(
  new URL("../../../../node_modules/.cache/trireme-peers/", import.meta.url),
);
