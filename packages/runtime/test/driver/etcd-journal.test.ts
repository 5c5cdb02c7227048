import type { DriverRecord } from "@trireme/runtime/driver";
import { etcdJournal } from "@trireme/runtime/etcd";
import { Etcd3 } from "etcd3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EtcdServer, noEtcd, startEtcd } from "./etcd-server.ts";

const record = (step: number): DriverRecord => ({
  hosts: new Map([[0, { incarnation: "a", ranks: 8, endpoint: { address: "h", port: 1 } }]]),
  stopRequested: false,
  end: { ok: true, reason: "r", step },
});

describe.skipIf(noEtcd)("a journal in etcd", () => {
  let etcd: EtcdServer;
  let hosts: string[];
  beforeAll(async () => {
    etcd = await startEtcd();
    hosts = [etcd.address];
  });
  afterAll(() => etcd.stop());

  it("hands the record of one leader to the next, which waits until the first is gone", async () => {
    const journal = etcdJournal({ hosts, run: "hand-over", lease: 2 });
    const first = await journal.lead();
    expect(first.record).toBeUndefined();
    await first.append(record(1));
    await first.append(record(2));
    let led = false;
    const second = journal.lead().then((leadership) => {
      led = true;
      return leadership;
    });
    await new Promise((resolve) => {
      setTimeout(resolve, 300);
    });
    expect(led).toBe(false);
    await first.release();
    const leadership = await second;
    expect(leadership.record).toEqual(record(2));
    expect(leadership.term).toBeGreaterThan(first.term);
    await leadership.release();
  });

  it("fences a leader whose key is another's, and tells it", async () => {
    const journal = etcdJournal({ hosts, run: "fence", lease: 2 });
    const old = await journal.lead();
    await old.append(record(1));
    // What the end of its lease does, while it knows of nothing.
    const client = new Etcd3({ hosts });
    await client.delete().key("trireme/fence/leader");
    const next = await journal.lead();
    await next.append(record(5));
    await expect(old.append(record(2))).rejects.toThrow("another driver has taken over");
    expect(old.lost.aborted).toBe(true);
    await next.release();
    expect((await journal.lead()).record).toEqual(record(5));
    await old.release();
    client.close();
  });

  it("gives up waiting when told to", async () => {
    const journal = etcdJournal({ hosts, run: "waiting", lease: 2 });
    const first = await journal.lead();
    const abort = new AbortController();
    const second = journal.lead(abort.signal);
    abort.abort(new Error("enough"));
    await expect(second).rejects.toThrow("enough");
    await first.release();
  });

  it("says where it could not reach etcd", async () => {
    const journal = etcdJournal({ hosts: ["http://127.0.0.1:9"], run: "r", requestDeadline: 1 });
    await expect(journal.lead()).rejects.toThrow(/^cannot lead the run r by etcd at http:\/\/127/);
  });
});

it.each([
  [{ hosts: [] }, "hosts is empty"],
  [{ run: "" }, 'run is ""'],
  [{ requestDeadline: Number.NaN }, "requestDeadline = NaN s must be above 0"],
  [{ requestDeadline: 0 }, "requestDeadline = 0 s must be above 0"],
  [{ requestDeadline: Infinity }, "requestDeadline = Infinity s must be above 0"],
  [{ lease: 0.5 }, "lease = 0.5 s must be a whole number"],
])("a journal in etcd of %o is refused at once", (more, message) => {
  const options = { hosts: ["http://127.0.0.1:9"], run: "r", ...more };
  expect(() => etcdJournal(options)).toThrow(message);
});
