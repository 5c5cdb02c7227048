/** Events of a run as a file that TensorBoard shows. */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { RunEvent } from "../../event.ts";
import { metricsOf, stepsDone } from "../../metrics/fields.ts";
import { fileError } from "../file-storage.ts";
import type { MetricSink } from "../json-lines.ts";
import { makeDirectorySync } from "../make-directory.ts";
import { encodeEvent, encodeFileVersion } from "./event.ts";
import { frameRecord } from "./record.ts";

/** How tags are named. */
export interface TensorBoardOptions {
  /** Before each tag, "train/" by default; `validation_loss` becomes "train/validation_loss". */
  readonly prefix?: string;
}

/** A file of events. */
export interface TensorBoardFile extends MetricSink {
  readonly path: string;
}

let files = 0;

/**
 * Makes an event file in `directory`, which TensorBoard is given as its log directory; a run that is
 * resumed makes another one there, and TensorBoard joins them.
 * @throws TriremeError "FILE" where it cannot be written.
 */
export function tensorBoardFile(
  directory: string,
  options: TensorBoardOptions = {},
): TensorBoardFile {
  const { prefix = "train/" } = options;
  const begun = Math.floor(Date.now() / 1e3);
  // The form that TensorBoard looks for, and that sorts by time; the last number tells files of one second apart.
  const name = `events.out.tfevents.${begun}.${hostname()}.${process.pid}.${files++}`;
  const path = join(directory, name);
  const attempt = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw fileError(`write ${path}`, error);
    }
  };
  let file: number | undefined = attempt(() => {
    makeDirectorySync(directory);
    return openSync(path, "wx");
  });
  const write = (data: Uint8Array): void => {
    attempt(() => {
      if (file === undefined) throw new Error("it was closed");
      writeFileSync(file, frameRecord(data));
    });
  };
  write(encodeFileVersion(begun));
  return {
    path,
    record(event: RunEvent) {
      const scalars = metricsOf(event).map(({ name: tag, value }) => ({
        tag: `${prefix}${tag}`,
        value,
      }));
      if (scalars.length === 0) return;
      write(encodeEvent({ wallTime: Date.now() / 1e3, step: stepsDone(event), scalars }));
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
      return Promise.resolve();
    },
  };
}
