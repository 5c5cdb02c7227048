/** What runs on an actor's thread or in its process: takes its role, then answers requests. */
import { parentPort, workerData } from "node:worker_threads";
import { type ActorRequest, server } from "./actors/actor.ts";
import { type ActorRole, handlerOf } from "./actors/roles.ts";

if (parentPort === null) {
  process.once("message", (role: ActorRole) => {
    const serve = server(handlerOf(role), (reply) => void process.send?.(reply));
    process.on("message", (request: ActorRequest) => serve(request));
  });
  // Without the host that it loads for there is nothing left to do.
  process.once("disconnect", () => process.exit(0));
} else {
  const port = parentPort;
  const role: ActorRole = workerData;
  const serve = server(handlerOf(role), (reply) => port.postMessage(reply));
  port.on("message", (request: ActorRequest) => serve(request));
}
