/** An agent in a process of its own: options as JSON in the first argument, events as lines of JSON. */
import { type AgentOptions, startAgent } from "@trireme/runtime/node";

const options: AgentOptions = JSON.parse(process.argv[2]!);
const tell = (event: object): void => void process.stdout.write(`${JSON.stringify(event)}\n`);
const agent = startAgent({ ...options, on: tell });
process.on("SIGTERM", () => void agent.close());
tell({ kind: "result", result: await agent.result });
