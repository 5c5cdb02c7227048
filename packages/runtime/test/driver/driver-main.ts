/**
 * A driver in a process of its own: options as JSON in the first argument, events as lines of JSON.
 * With `dies` it is killed just before or just after it makes its n-th record durable.
 */
import type { Journal } from "@trireme/runtime/driver";
import { type DriverOptions, fileJournal, startDriver } from "@trireme/runtime/node";

interface Dies {
  readonly write: number;
  readonly when: "before" | "after";
}

interface MainOptions extends Omit<DriverOptions, "journal"> {
  readonly journal: string;
  readonly dies?: Dies;
  /** Address of an etcd server that has the journal instead of the directory. */
  readonly etcd?: string;
}

const { journal, dies, etcd, ...options }: MainOptions = JSON.parse(process.argv[2]!);
const tell = (event: object): void => void process.stdout.write(`${JSON.stringify(event)}\n`);

/** A journal whose process dies at a write, as by a power cut. */
function deadly(inner: Journal, { write, when }: Dies): Journal {
  return {
    async lead(signal) {
      const leadership = await inner.lead(signal);
      let writes = 0;
      return {
        term: leadership.term,
        record: leadership.record,
        lost: leadership.lost,
        release: () => leadership.release(),
        async append(record) {
          const now = writes++ === write;
          if (now && when === "before") process.kill(process.pid, "SIGKILL");
          await leadership.append(record);
          if (now) process.kill(process.pid, "SIGKILL");
        },
      };
    },
  };
}

const file =
  etcd === undefined
    ? fileJournal(journal)
    : (await import("@trireme/runtime/etcd")).etcdJournal({
        hosts: [etcd],
        run: options.run,
        lease: 2,
      });
const driver = await startDriver({
  ...options,
  journal: dies === undefined ? file : deadly(file, dies),
  on: tell,
});
process.on("SIGTERM", () => driver.stop());
try {
  tell({ kind: "result", result: await driver.result });
} catch (error) {
  tell({ kind: "stepped-down", reason: String(error) });
  process.exitCode = 1;
}
