/**
 * A journal in etcd, for drivers on several hosts. The leader holds a key under a lease that it keeps
 * alive; a standby watches the key. The revision that created the key is the term. Every write is a
 * transaction that compares this revision: a leader that has lost its lease, and may not know, cannot
 * write (fencing), so what a new leader reads is final.
 */
import { randomUUID } from "node:crypto";
import { TriremeError, type Seconds, missingPeer } from "@trireme/core";
import type { Etcd3, IOptions, Lease } from "etcd3";
import {
  type DriverRecord,
  decodeDriverRecord,
  encodeDriverRecord,
} from "../../driver/driver-record.ts";
import type { Journal, Leadership } from "../../driver/journal.ts";

const library = await import("etcd3").catch(missingPeer("@trireme/runtime/etcd", "etcd3", "1.1.2"));

export interface EtcdJournalOptions {
  /** Addresses of the cluster: "https://etcd-0:2379". */
  readonly hosts: readonly string[];
  /** Name of the run; its keys are `<prefix>/<run>/leader` and `<prefix>/<run>/record`. */
  readonly run: string;
  /** Default "trireme". */
  readonly prefix?: string;
  /** Time after which a leader that is gone is taken over; whole seconds, default 10. */
  readonly lease?: Seconds;
  /** Time for one request; default 5 s. */
  readonly requestDeadline?: Seconds;
  readonly credentials?: IOptions["credentials"];
  readonly auth?: IOptions["auth"];
}

/**
 * A journal for drivers that reach the same etcd cluster.
 * @throws TriremeError "JOURNAL" for a time out of range, no host, or a run without a name.
 */
export function etcdJournal(options: EtcdJournalOptions): Journal {
  const { hosts, run, prefix = "trireme", lease = 10, requestDeadline = 5 } = options;
  const { credentials, auth } = options;
  if (!Number.isSafeInteger(lease) || lease < 1) {
    throw new TriremeError("JOURNAL", `lease = ${lease} s must be a whole number of at least 1`);
  }
  // Timers hold 31 bits of milliseconds.
  if (!(requestDeadline > 0 && requestDeadline <= 2e6)) {
    const found = `requestDeadline = ${requestDeadline} s`;
    throw new TriremeError("JOURNAL", `${found} must be above 0 and at most 2000000; 5 is usual`);
  }
  if (hosts.length === 0 || run === "") {
    const found = hosts.length === 0 ? "hosts is empty" : 'run is ""';
    throw new TriremeError("JOURNAL", `${found}: an etcd journal needs an address and a name`);
  }
  return {
    async lead(signal) {
      const client = new library.Etcd3({
        hosts: [...hosts],
        dialTimeout: requestDeadline * 1000,
        defaultCallOptions: ({ isStream }) =>
          isStream ? {} : { deadline: Date.now() + requestDeadline * 1000 },
        ...(credentials === undefined ? {} : { credentials }),
        ...(auth === undefined ? {} : { auth }),
      });
      const keys = { leader: `${prefix}/${run}/leader`, record: `${prefix}/${run}/record` };
      try {
        return await campaign(client, keys, lease, signal);
      } catch (error) {
        client.close();
        throw journalError(`lead the run ${run} by etcd at ${hosts.join(", ")}`, error);
      }
    },
  };
}

interface Keys {
  readonly leader: string;
  readonly record: string;
}

async function campaign(
  client: Etcd3,
  keys: Keys,
  ttl: Seconds,
  signal: AbortSignal | undefined,
): Promise<Leadership> {
  for (;;) {
    signal?.throwIfAborted();
    const lease = client.lease(ttl);
    // Taken up again by `begin`; until then it must not be an unhandled event.
    lease.on("lost", () => undefined);
    const put = await lease.put(keys.leader).value(randomUUID()).op();
    const result = await client.if(keys.leader, "Create", "==", 0).then(put).commit();
    if (result.succeeded) return await begin(client, keys, lease, result.header.revision);
    await lease.revoke();
    await untilGone(client, keys.leader, Number(result.header.revision) + 1, signal);
  }
}

/** Resolves when the key is deleted, by its owner or with its lease. */
async function untilGone(
  client: Etcd3,
  key: string,
  from: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const watcher = await client.watch().key(key).startRevision(String(from)).create();
  try {
    await new Promise<void>((resolve, reject) => {
      watcher.on("delete", () => resolve());
      watcher.on("error", reject);
      // It may have gone between the transaction and the watch, or while the watch was cut off.
      const look = (): void => {
        client
          .get(key)
          .exists()
          .then((exists) => (exists ? undefined : resolve()))
          .catch(reject);
      };
      watcher.on("connected", look);
      look();
      const abort = (): void => reject(signal?.reason);
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  } finally {
    await watcher.cancel();
  }
}

async function begin(
  client: Etcd3,
  keys: Keys,
  lease: Lease,
  revision: string,
): Promise<Leadership> {
  const stored = await client.get(keys.record).string();
  const lost = new AbortController();
  const lose = (why: string, cause?: unknown): TriremeError => {
    const error = new TriremeError("JOURNAL", `this driver leads no more: ${why}`, { cause });
    lost.abort(error);
    return error;
  };
  lease.on("lost", (cause) => lose(`its lease in etcd was lost (${cause.message})`, cause));
  return {
    term: Number(revision),
    record: stored === null ? undefined : decodeDriverRecord(stored),
    lost: lost.signal,
    async append(record: DriverRecord) {
      lost.signal.throwIfAborted();
      let succeeded: boolean;
      try {
        ({ succeeded } = await client
          .if(keys.leader, "Create", "==", revision)
          .then(client.put(keys.record).value(encodeDriverRecord(record)))
          .commit());
      } catch (cause) {
        // It may have been written or not: only a new leader, who reads it, may go on.
        throw lose(cause instanceof Error ? cause.message : String(cause), cause);
      }
      if (!succeeded) throw lose("another driver has taken over");
    },
    async release() {
      try {
        // With the lease goes the key, and whoever waits is told at once.
        if (!lost.signal.aborted) await lease.revoke();
      } finally {
        client.close();
      }
    },
  };
}

function journalError(what: string, cause: unknown): unknown {
  if (cause instanceof TriremeError || !(cause instanceof Error)) return cause;
  return new TriremeError("JOURNAL", `cannot ${what}: ${cause.message}`, { cause });
}
