/** What those who play a part of a run see of it. */
import type { Seconds } from "@trireme/core";

import type { RecoveryController } from "../recovery/controller.ts";
import type { ControllerRecord } from "../recovery/record.ts";
import type { Beats } from "./beats.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Progress } from "./progress.ts";
import type { RunInput } from "./run-input.ts";

export interface RunStage {
  readonly input: RunInput;
  readonly controller: RecoveryController;
  readonly loop: EventLoop;
  readonly beats: Beats;
  /** Hosts, and the place of each among them. */
  readonly hosts: readonly number[];
  readonly index: ReadonlyMap<number, number>;
  readonly record: ControllerRecord;
  readonly progress: Progress;
  /** When the present phase was decided. */
  readonly turned: Seconds;
  /** Whether a host, by its place, is a member of the generation. */
  isMember(index: number): boolean;
  /** Delivers what all the hosts that are not played would have said by now. */
  sync(): void;
  /** Draws the consequences of a decision, if there was one. */
  decided(): void;
  /** Begins to train if all members have joined. */
  form(generation: number): void;
}
