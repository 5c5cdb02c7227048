/** Carries out what the state machine of a save orders, with any number of writers. */
import {
  type MarkedFile,
  type SaveEvent,
  type SaveOrder,
  advanceSave,
  startSaving,
} from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import type { CheckpointStorage } from "./storage.ts";

/**
 * Writes and syncs one writer's files in the directory given, and says what they are: `writeFiles`, or
 * a message to a host that calls it.
 */
export type ShardWriter = (directory: string) => Promise<readonly MarkedFile[]>;

/** One save. */
export interface SaveExecution {
  readonly storage: CheckpointStorage;
  readonly directory: string;
  readonly step: number;
  readonly keep: number;
  readonly writers: readonly ShardWriter[];
  /** The names in the directory, and which of them are no whole checkpoints. */
  readonly list: () => Promise<{
    readonly names: readonly string[];
    readonly incomplete: readonly string[];
  }>;
}

/**
 * Makes a checkpoint durable and resolves to its name. Its bytes are in the writers' hands: the copy to
 * the host, which the machine orders first, has been taken.
 * @throws TriremeError "FILE" with what the storage or a writer says. Where the checkpoint is complete
 * all the same, and what failed came after, the message says so.
 */
export function carryOutSave(save: SaveExecution): Promise<string> {
  const { storage, directory, step, keep, writers, list } = save;
  return new Promise((resolve, reject) => {
    let cause: unknown;
    const failed = (error: unknown): string => {
      cause ??= error;
      return error instanceof Error ? error.message : String(error);
    };
    const tell = (event: SaveEvent): void => {
      const turn = advanceSave(state, event);
      state = turn.state;
      for (const order of turn.orders) act(order);
    };
    const answer = (work: Promise<unknown>, done: SaveEvent): void => {
      work
        .then(
          () => done,
          (error): SaveEvent => ({ kind: "operation-failed", reason: failed(error) }),
        )
        .then(tell)
        .catch(reject);
    };
    const act = (order: SaveOrder): void => {
      switch (order.kind) {
        case "snapshot":
          tell({ kind: "snapshot-done" });
          return;
        case "resume":
          return;
        case "list":
          list()
            .then(
              (listed): SaveEvent => ({ kind: "listed", ...listed }),
              (error): SaveEvent => ({ kind: "operation-failed", reason: failed(error) }),
            )
            .then(tell)
            .catch(reject);
          return;
        case "operate":
          answer(storage.execute(order.operation), { kind: "operation-done" });
          return;
        case "write":
          written(order.writer, order.directory);
          return;
        case "saved":
          resolve(order.name);
          return;
        case "failed": {
          const complete = order.durable ? `the checkpoint of step ${step} is complete, but ` : "";
          reject(new TriremeError("FILE", `${complete}${order.reason}`, { cause }));
        }
      }
    };
    const written = (writer: number, into: string): void => {
      // A writer that throws before it promises anything fails as one that throws later.
      Promise.resolve(into)
        .then(writers[writer])
        .then(
          (files): SaveEvent => ({ kind: "written", writer, files }),
          (error): SaveEvent => ({ kind: "write-failed", writer, reason: failed(error) }),
        )
        .then(tell)
        .catch(reject);
    };
    const { renames } = storage;
    let state = startSaving({ directory, keep, writers: writers.length, renames });
    tell({ kind: "request", step });
  });
}
