/**
 * Plays a history of the simulation against processes: a driver (and one that waits to take over),
 * an agent for each host, and between them this proxy, which hands each message on at the time and in
 * the order that the history has recorded. Every order and every record must be the history's.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HistoryScript, TraceEntry } from "@trireme/fault-tolerance/simulation";
import { drawScript, playScript } from "@trireme/fault-tolerance/simulation";
import {
  type AgentReport,
  type Answer,
  type Endpoint,
  parseAgentMessage,
  parseDriverMessage,
} from "@trireme/runtime/driver";
import {
  type Connection,
  dial,
  listen,
  monotonicClock,
  openConnection,
} from "@trireme/runtime/node";
import { DriverProcess, Inbox } from "./driver-process.ts";

const run = "replay";
const token = "a token for replayed histories";
const security = { token };
const endpoint = { address: "127.0.0.1", port: 1 };

export interface Programs {
  readonly driver: string;
  readonly agent: string;
}

/** What was compared. */
export interface Replayed {
  readonly reports: number;
  readonly records: number;
  readonly takeOvers: number;
}

/**
 * The history of a seed. A journal on the local disk has one leader at a time, so a take-over with
 * both alive is a restart here; all other mishaps are as drawn.
 */
export function scriptOf(seed: number): HistoryScript {
  const script = drawScript(seed);
  return {
    ...script,
    mishaps: script.mishaps.map(({ at, mishap }) =>
      mishap.kind === "take-over"
        ? { at, mishap: { kind: "restart", down: 5, skew: mishap.skew } }
        : { at, mishap },
    ),
  };
}

export async function replayHistory(seed: number, programs: Programs): Promise<Replayed> {
  const script = scriptOf(seed);
  const { trace } = playScript(script);
  const replay = new Replay(script, trace, programs);
  try {
    await replay.open();
    return await replay.play();
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  } finally {
    await replay.close();
  }
}

class Replay {
  readonly #script: HistoryScript;
  readonly #trace: readonly TraceEntry[];
  readonly #programs: Programs;
  readonly #directory = mkdtempSync(join(tmpdir(), "trireme-replay-"));
  readonly #hosts: readonly number[];
  /** Agents' connections to this proxy, by host, and what came of them. */
  readonly #agents = new Map<number, Connection>();
  readonly #reports = new Map<number, Inbox<string>>();
  readonly #puppets = new Map<number, Promise<unknown>>();
  /** This proxy's connections to the driver, by host, and the answers. */
  #upstream = new Map<number, Connection>();
  readonly #answers = new Map<number, Inbox<string>>();
  readonly #expected = new Map<number, unknown[]>();
  #driver: DriverProcess | undefined;
  #standby: DriverProcess | undefined;
  #server: { close(): unknown } | undefined;
  #joined = new Inbox<number>();

  constructor(script: HistoryScript, trace: readonly TraceEntry[], programs: Programs) {
    this.#script = script;
    this.#trace = trace;
    this.#programs = programs;
    this.#hosts = [...script.options.hosts, ...script.options.standbys];
  }

  async open(): Promise<void> {
    this.#standby = this.#newDriver();
    const { server, endpoint: proxy } = await listen({}, security, (socket) => {
      let host: number | undefined;
      let connection: Connection;
      openConnection(socket, {
        role: "driver",
        run,
        security,
        open: (opened) => {
          connection = opened;
        },
        message: (text) => {
          const message = parseAgentMessage(text);
          if (message.kind === "join") {
            host = message.host;
            this.#agents.set(host, connection);
            this.#joined.push(host);
          } else if (host !== undefined) this.#reports.get(host)!.push(text);
        },
        closed: () => undefined,
      });
    });
    this.#server = server;
    for (const host of this.#hosts) this.#startPuppet(host, proxy);
    for (const _ of this.#hosts) await this.#joined.take("an agent to join the proxy");
  }

  #newDriver(): DriverProcess {
    const { hosts, standbys, ...policy } = this.#script.options;
    return new DriverProcess(this.#programs.driver, {
      ...finite(policy),
      run,
      hosts: hosts.length,
      standbys: standbys.length,
      joinDeadline: 1e9,
      endDeadline: 1e9,
      security,
      directory: this.#directory,
    });
  }

  #startPuppet(host: number, proxy: Endpoint): void {
    const reports = this.#trace.flatMap(({ input }) =>
      input.kind === "report" && input.report.host === host ? [agentReport(input.report)] : [],
    );
    const file = join(this.#directory, `agent-${host}.json`);
    mkdirSync(this.#directory, { recursive: true });
    writeFileSync(file, JSON.stringify({ run, host, token, endpoint: proxy, reports }));
    const child = spawn(process.execPath, [this.#programs.agent, file], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#reports.set(host, new Inbox());
    this.#answers.set(host, new Inbox());
    this.#expected.set(host, []);
    let text = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (piece: string) => {
      text += piece;
    });
    this.#puppets.set(
      host,
      new Promise((resolve) => {
        child.once("close", () => resolve(JSON.parse(text)));
      }),
    );
  }

  async play(): Promise<Replayed> {
    let [reports, records, takeOvers] = [0, 0, -1];
    for (const entry of this.#trace) {
      const { at, input } = entry;
      let order: unknown;
      if (input.kind === "start") {
        takeOvers++;
        await this.#start(at, input.record);
        continue;
      }
      const driver = this.#driver!;
      if (input.kind === "report") {
        reports++;
        order = await this.#deliver(input.report.host, at);
      } else if (input.kind === "tick") await driver.do({ kind: "tick", at });
      else if (input.kind === "suspect") await driver.do({ ...input, hosts: [...input.hosts], at });
      else await driver.do({ ...input, at });
      // It comes by another way than the order. One too many would be taken for the next one's.
      const record =
        entry.record === undefined
          ? undefined
          : await driver.records.take(`the record after ${JSON.stringify(input)}`);
      if (record !== undefined) records++;
      const got = plainReasons(JSON.stringify({ order, record }));
      const expected = JSON.stringify({ order: entry.order, record: entry.record });
      if (got !== expected) {
        throw new Error(`${JSON.stringify(input)} at ${at} s gave ${got}, not ${expected}`);
      }
    }
    const left = this.#driver?.records.drain() ?? [];
    if (left.length > 0) throw new Error(`the driver has decided more: ${left.join(", ")}`);
    for (const connection of this.#agents.values()) connection.close();
    for (const [host, orders] of this.#puppets) {
      const got = JSON.stringify(await orders);
      const expected = JSON.stringify(this.#expected.get(host));
      if (got !== expected) throw new Error(`host ${host} was told ${got}, not ${expected}`);
    }
    return { reports, records, takeOvers };
  }

  /** The driver dies, and the one that waits leads; or the first begins. */
  async #start(at: number, record: string): Promise<void> {
    const next = this.#standby!;
    next.write({ kind: "at", at });
    await next.words.take("a driver to be ready");
    await this.#driver?.kill();
    const lead = await next.words.take("a driver to lead");
    this.#driver = next;
    this.#standby = this.#newDriver();
    this.#upstream = new Map();
    for (const host of this.#hosts)
      await this.#joinAs(host, { address: "127.0.0.1", port: lead.port! });
    await next.do({ kind: "at", at });
    // The first driver writes the record that the history began with; another has it from the journal.
    const [first, ...rest] = next.records.drain();
    if (rest.length > 0 || (first !== undefined && plainReasons(first) !== record)) {
      throw new Error(`a driver began with ${first} and ${rest.length} more, not ${record}`);
    }
  }

  async #joinAs(host: number, driver: Endpoint): Promise<void> {
    const socket = await dial(driver, security, 10, monotonicClock);
    await new Promise<void>((resolve, reject) => {
      openConnection(socket, {
        role: "agent",
        run,
        security,
        open: (connection) => {
          this.#upstream.set(host, connection);
          const entry = { kind: "join", host, incarnation: `puppet ${host}`, ranks: 1, endpoint };
          connection.send(JSON.stringify(entry));
        },
        message: (text) => {
          const message = parseDriverMessage(text);
          if (message.kind === "welcome") resolve();
          else if (message.kind === "answer") this.#answers.get(host)!.push(text);
          else if (message.kind === "refuse") reject(new Error(message.reason));
        },
        closed: () => reject(new Error("the driver hung up")),
      });
    });
  }

  /** Has an agent report, hands the report on and the answer back. */
  async #deliver(host: number, at: number): Promise<unknown> {
    const agent = this.#agents.get(host)!;
    agent.send(JSON.stringify({ kind: "ask" }));
    const upstream = this.#upstream.get(host)!;
    const time = { kind: "metrics", host, generation: 0, rank: 0, step: 0, values: { at } };
    upstream.send(JSON.stringify(time));
    upstream.send(await this.#reports.get(host)!.take(`a report of host ${host}`));
    const text = await this.#answers.get(host)!.take(`an answer to host ${host}`);
    agent.send(text);
    const { order } = JSON.parse(text) as Answer;
    this.#expected.get(host)!.push(order);
    return order;
  }

  async close(): Promise<void> {
    for (const connection of this.#agents.values()) connection.close();
    await this.#driver?.kill();
    await this.#standby?.kill();
    await Promise.all(this.#puppets.values());
    this.#server?.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** JSON has no Infinity: what is infinite by default is left out. */
function finite(policy: object): object {
  return Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== Infinity));
}

/** The driver says which rank declared a fault; the simulation has no ranks. */
function plainReasons(record: string): string {
  return record.replaceAll("rank 0 declared a host fault: ", "");
}

function agentReport(report: {
  readonly host: number;
  readonly generation: number;
  readonly done: number;
  readonly saved?: number;
  readonly fault?: "host" | "software" | "loss";
  readonly reason?: string;
}): AgentReport {
  const { host, generation, done, saved = done, fault, reason = "" } = report;
  return {
    kind: "report",
    host,
    incarnation: `puppet ${host}`,
    generation,
    begun: false,
    done,
    saved,
    failures: fault === undefined ? [] : [{ kind: "declared", rank: 0, scope: fault, reason }],
    finished: false,
    endpoint,
  };
}
