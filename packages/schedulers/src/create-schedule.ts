/** Schedules by name, as a run description gives them. */
import { TriremeError, nearestName } from "@trireme/core";
import { chimera } from "./chimera.ts";
import { vHalf, vMin } from "./controllable-memory.ts";
import { deepSpeedInference, deepSpeedTrain } from "./deepspeed.ts";
import { dfsBfs } from "./dfs-bfs.ts";
import { dualPipe, dualPipeV } from "./dual-pipe.ts";
import { gpipe } from "./gpipe.ts";
import { interleaved } from "./interleaved.ts";
import { loopedBfs } from "./looped-bfs.ts";
import { oneForwardOneBackward } from "./one-forward-one-backward.ts";
import type { Schedule } from "./schedule.ts";
import { zbV } from "./zb-v.ts";
import { interleavedZeroBubble, zbH1, zbH2 } from "./zero-bubble.ts";

export interface CreateScheduleOptions {
  readonly ranks: number;
  /** Stages per rank; 1 when left out, or 2 where the schedule has two by its nature. */
  readonly chunks?: number;
  readonly microbatches: number;
}

interface Entry {
  readonly name: string;
  /** Other systems' names for it. */
  readonly aliases: readonly string[];
  /** Chunks per rank that the schedule can have. */
  readonly chunks: "one" | "two" | "many";
  readonly create: (o: Required<CreateScheduleOptions>) => Schedule;
}

const entries: readonly Entry[] = [
  { name: "gpipe", aliases: ["afab"], chunks: "one", create: gpipe },
  { name: "1f1b", aliases: ["schedule1f1b"], chunks: "one", create: oneForwardOneBackward },
  {
    name: "interleaved",
    aliases: ["interleaved1f1b", "interleaved-1f1b"],
    chunks: "many",
    create: interleaved,
  },
  { name: "dfs-bfs", aliases: ["dfsbfs"], chunks: "many", create: dfsBfs },
  { name: "looped-bfs", aliases: ["loopedbfs"], chunks: "many", create: loopedBfs },
  { name: "zb-h1", aliases: ["zb1p"], chunks: "one", create: zbH1 },
  { name: "zb-h2", aliases: ["zb2p"], chunks: "one", create: zbH2 },
  {
    name: "interleaved-zero-bubble",
    aliases: ["interleavedzerobubble"],
    chunks: "many",
    create: interleavedZeroBubble,
  },
  { name: "zb-v", aliases: ["zbv", "zbvzerobubble"], chunks: "two", create: zbV },
  { name: "v-half", aliases: ["vhalf"], chunks: "two", create: vHalf },
  { name: "v-min", aliases: ["vmin"], chunks: "two", create: vMin },
  { name: "chimera", aliases: ["bidirectional"], chunks: "two", create: chimera },
  { name: "dualpipe", aliases: [], chunks: "two", create: dualPipe },
  { name: "dualpipe-v", aliases: ["dualpipev"], chunks: "two", create: dualPipeV },
  { name: "deepspeed-train", aliases: ["trainschedule"], chunks: "one", create: deepSpeedTrain },
  {
    name: "deepspeed-inference",
    aliases: ["inferenceschedule"],
    chunks: "one",
    create: deepSpeedInference,
  },
];

/** Names that `createSchedule` knows. */
export const scheduleNames: readonly string[] = entries.map((e) => e.name);

/**
 * The schedule with this name; letters may be of either case.
 * @throws TriremeError `SCHEDULE_NAME` for an unknown name, with the nearest known one, `SCHEDULE`
 * for counts that the schedule cannot have.
 */
export function createSchedule(name: string, o: CreateScheduleOptions): Schedule {
  const key = name.toLowerCase();
  const entry = entries.find((e) => e.name === key || e.aliases.includes(key));
  if (entry === undefined) {
    const all = entries.flatMap((e) => e.aliases).concat(scheduleNames);
    const near = nearestName(name, all);
    throw new TriremeError(
      "SCHEDULE_NAME",
      `unknown schedule "${name}"; ${near === undefined ? `known are ${scheduleNames.join(", ")}` : `did you mean "${near}"?`}`,
    );
  }
  const natural = entry.chunks === "two" ? 2 : 1;
  const chunks = o.chunks ?? natural;
  if (entry.chunks !== "many" && chunks !== natural) {
    throw new TriremeError(
      "SCHEDULE",
      `${entry.name} has ${natural} stage${natural === 1 ? "" : "s"} per rank, not ${chunks}; ` +
        `use "interleaved" for other numbers`,
    );
  }
  return entry.create({ ...o, chunks });
}
