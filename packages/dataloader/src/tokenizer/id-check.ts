import { TriremeError } from "@trireme/core";

/** The ids as a list, each of them known; the first that is not is refused with its place. */
export function checkedIds(
  tokens: Iterable<number>,
  known: (id: number) => boolean,
  vocabulary: number,
): number[] {
  const ids = [...tokens];
  const strange = ids.findIndex((id) => !known(id));
  if (strange === -1) return ids;
  const id = ids[strange]!;
  const reason =
    Number.isInteger(id) && id >= 0 && id < vocabulary
      ? "the vocabulary has none of that number"
      : `ids are 0..${vocabulary - 1}`;
  throw new TriremeError("TOKEN", `token ${id} at ${strange}: ${reason}`);
}
