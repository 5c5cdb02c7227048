/** A rank's place at the loader of its host as text: what a process finds in its environment. */
import { TriremeError } from "@trireme/core";
import type { RankFeed } from "@trireme/dataloader/node";

/** Variable of a rank's environment with its feed; absent where no loader feeds it. */
export const feedVariable = "TRIREME_FEED";

/** @throws TriremeError "FEED" for a ring in this process's own memory. */
export function encodeFeed(feed: RankFeed): string {
  if (feed.ring.kind === "file") return JSON.stringify(feed);
  const reason = 'its ring is memory of this process; start the loader with actors "process"';
  throw new TriremeError("FEED", `the feed of rank ${feed.rank} cannot be sent: ${reason}`);
}

/** @throws TriremeError "FEED" for text that is none. */
export function decodeFeed(text: string): RankFeed {
  let feed: unknown;
  try {
    feed = JSON.parse(text);
  } catch (cause) {
    throw new TriremeError("FEED", `no feed of a rank: ${text.slice(0, 60)}`, { cause });
  }
  if (isFeed(feed)) return feed;
  throw new TriremeError("FEED", `no feed of a rank: ${text.slice(0, 60)}`);
}

function isFeed(value: unknown): value is RankFeed {
  if (typeof value !== "object" || value === null) return false;
  const { rank, reader, ring }: Partial<Record<keyof RankFeed, unknown>> = value;
  const { kind, path }: { kind?: unknown; path?: unknown } = Object(ring);
  const numbers = typeof rank === "number" && typeof reader === "number";
  return numbers && kind === "file" && typeof path === "string";
}
