import type { Snapshot } from "@trireme/runtime";

/** A state of 6 MiB that says in every byte which step it is of. */
export function stateOf(step: number): Snapshot {
  const bytes = (length: number): Uint8Array => new Uint8Array(length).fill(step % 251);
  return {
    step,
    files: [
      { name: "model.safetensors", bytes: bytes(2 * 2 ** 20) },
      { name: "optimizer.safetensors", bytes: bytes(4 * 2 ** 20 + 1) },
    ],
  };
}
