/** Saves checkpoints of steps 1, 2, … as fast as it can until it is killed: `tsx saving-process.ts DIRECTORY`. */
import { fileStore } from "@trireme/runtime/node";
import { stateOf } from "./state-of.ts";

const [, , directory] = process.argv;
const store = fileStore(directory!, { keep: 2 });
const first = ((await store.newest()) ?? 0) + 1;
process.stdout.write("saving\n");
for (let step = first; ; step++) await store.save(stateOf(step));
