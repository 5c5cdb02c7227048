/** What goes into the state machine of a save, and what comes out of it. */
import type { FileOperation } from "./commit-plan.ts";
import type { MarkedFile } from "./marker.ts";

/** What happened. */
export type SaveEvent =
  /** Training is between two steps and wants this state saved; it waits for "resume". */
  | { readonly kind: "request"; readonly step: number }
  /** The whole state is in the host buffer. */
  | { readonly kind: "snapshot-done" }
  | { readonly kind: "snapshot-failed"; readonly reason: string }
  /**
   * The names in the directory; [] where it does not exist. `incomplete`: those of checkpoints that
   * are not whole.
   */
  | {
      readonly kind: "listed";
      readonly names: readonly string[];
      readonly incomplete?: readonly string[];
    }
  | { readonly kind: "operation-done" }
  /** The list or the file operation that was ordered failed. */
  | { readonly kind: "operation-failed"; readonly reason: string }
  /** A writer has written and synced its files. */
  | { readonly kind: "written"; readonly writer: number; readonly files: readonly MarkedFile[] }
  /** A writer failed, or died. */
  | { readonly kind: "write-failed"; readonly writer: number; readonly reason: string };

/** What to do. */
export type SaveOrder =
  /** Copy the state into that host buffer. */
  | { readonly kind: "snapshot"; readonly step: number; readonly buffer: number }
  /** Training may go on. */
  | { readonly kind: "resume"; readonly step: number }
  /** List the names in the directory. */
  | { readonly kind: "list"; readonly path: string }
  | { readonly kind: "operate"; readonly operation: FileOperation }
  /** Write and sync this writer's files of that buffer into the directory. */
  | {
      readonly kind: "write";
      readonly step: number;
      readonly buffer: number;
      readonly writer: number;
      readonly directory: string;
    }
  | { readonly kind: "saved"; readonly step: number; readonly name: string }
  /** `durable`: the checkpoint is complete; what came after it (the pointer, removals) failed. */
  | {
      readonly kind: "failed";
      readonly step: number;
      readonly reason: string;
      readonly durable: boolean;
    };
