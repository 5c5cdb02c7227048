/**
 * A driver whose clock stands still but where its standard input moves it: a history's time is what
 * the history says. Everything else is the real thing: sockets, codes, journal, fsync. A line of JSON
 * in is done, and what it led to is durable, when its number comes back out.
 */
import { createInterface } from "node:readline";
import { encodeRecord } from "@trireme/fault-tolerance";
import type { Journal } from "@trireme/runtime/driver";
import { type Clock, type DriverOptions, fileJournal, startDriver } from "@trireme/runtime/node";

export type ScriptLine =
  | { readonly kind: "at"; readonly at: number }
  | { readonly kind: "tick"; readonly at: number }
  | {
      readonly kind: "suspect";
      readonly at: number;
      readonly hosts: number[];
      readonly reason: string;
    }
  | { readonly kind: "admit"; readonly at: number; readonly host: number }
  | {
      readonly kind: "update";
      readonly at: number;
      readonly version: number;
      readonly urgent: boolean;
    };

const { directory, ...options }: Omit<DriverOptions, "journal"> & { directory: string } =
  JSON.parse(process.argv[2]!);
const tell = (word: object): void => void process.stdout.write(`${JSON.stringify(word)}\n`);

let now = 0;
const timers = new Set<{ at: number; wake: () => void }>();
const clock: Clock = {
  now: () => now,
  after(delay, wake) {
    const timer = { at: now + delay, wake };
    timers.add(timer);
    return () => timers.delete(timer);
  },
};
// A timer that is due fires at a tick alone: which came first, a message or the time, is the history's to say.
const fire = (): void => {
  for (const timer of timers) {
    if (timer.at > now || !timers.delete(timer)) continue;
    timer.wake();
  }
};

let writing: Promise<void> = Promise.resolve();
let last = "";
const journal: Journal = {
  async lead(signal) {
    const leadership = await fileJournal(directory).lead(signal);
    return {
      ...leadership,
      term: leadership.term,
      record: leadership.record,
      lost: leadership.lost,
      release: () => leadership.release(),
      append(record) {
        const text = record.controller === undefined ? "" : encodeRecord(record.controller);
        writing = leadership.append(record).then(() => {
          if (text !== last) tell({ kind: "record", record: text });
          last = text;
        });
        return writing;
      },
    };
  },
};

// The time must be right before the machine is made, and it is made as soon as this driver leads.
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const first = await lines.next();
now = (JSON.parse(first.value as string) as ScriptLine).at;
tell({ kind: "ready" });
// A report brings its time with it, as a measurement sent just before on the same connection.
const driver = await startDriver({
  ...options,
  journal,
  clock,
  on: (event) => {
    if (event.kind === "metrics") now = event.values["at"]!;
  },
});
tell({ kind: "lead", port: driver.endpoint.port, term: driver.term });
for await (const line of { [Symbol.asyncIterator]: () => lines }) {
  const word = JSON.parse(line) as ScriptLine;
  now = word.at;
  switch (word.kind) {
    case "at":
      break;
    case "tick":
      fire();
      break;
    case "suspect":
      driver.suspect(word.hosts, word.reason);
      break;
    case "admit":
      driver.admit(word.host);
      break;
    case "update":
      driver.update(word.version, { urgent: word.urgent });
  }
  await writing;
  tell({ kind: "done" });
}
