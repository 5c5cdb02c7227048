/**
 * An agent process that says what the history says: connects to the proxy as an agent does, and for
 * each `ask` sends its next report. It tells the orders that it got, to be compared with the history.
 */
import { readFileSync } from "node:fs";
import { type AgentReport, type Endpoint, parseDriverMessage } from "@trireme/runtime/driver";
import { dial, monotonicClock, openConnection } from "@trireme/runtime/node";

const { run, host, token, endpoint, reports }: Puppet = JSON.parse(
  readFileSync(process.argv[2]!, "utf8"),
);

export interface Puppet {
  readonly run: string;
  readonly host: number;
  readonly token: string;
  readonly endpoint: Endpoint;
  readonly reports: readonly AgentReport[];
}

const security = { token };
const orders: unknown[] = [];
let next = 0;
const socket = await dial(endpoint, security, 10, monotonicClock);
openConnection(socket, {
  role: "agent",
  run,
  security,
  open(connection) {
    const incarnation = `puppet ${host}`;
    const join = {
      kind: "join",
      host,
      incarnation,
      ranks: 1,
      endpoint: { address: "127.0.0.1", port: 1 },
    };
    connection.send(JSON.stringify(join));
    send = (text) => connection.send(text);
  },
  message(text) {
    const message = parseDriverMessage(text);
    if (message.kind === "ask") send(JSON.stringify(reports[next++]));
    else if (message.kind === "answer") orders.push(message.order);
  },
  closed() {
    process.stdout.write(JSON.stringify(orders), () => process.exit(0));
  },
});
let send: (text: string) => void;
