/**
 * The driver of a run while it leads: carries out what `DriverMachine` decides on real messages and a
 * real clock. What follows from a decision is sent once the decision is durable.
 */
import type { Server, Socket } from "node:net";
import { TriremeError, type Seconds } from "@trireme/core";
import type { DriverMachine } from "../../driver/driver-machine.ts";
import type { DriverRecord } from "../../driver/driver-record.ts";
import type { Leadership } from "../../driver/journal.ts";
import type { Endpoint } from "../../driver/launch.ts";
import type { AgentMessage, Answer, DriverMessage } from "../../driver/message.ts";
import { parseAgentMessage } from "../../driver/parse-message.ts";
import type { Clock } from "./clock.ts";
import { type Connection, openConnection } from "./connection.ts";
import type { Driver, DriverOptions, DriverResult } from "./driver.ts";
import { type DriverEvent, changesOf } from "./driver-event.ts";
import { listen } from "./listen.ts";

/** An agent's connection, and as whom it has joined. */
interface Peer {
  readonly connection: Connection;
  host?: number;
}

/** Options with what a driver needs filled in. */
export interface RunDriverOptions extends DriverOptions {
  readonly heartbeat: Seconds;
  readonly clock: Clock;
}

/** Connections at once for each place of the run, strangers included. */
const connectionsPerPlace = 4;

export class RunDriver implements Driver {
  readonly term: number;
  readonly result: Promise<DriverResult>;
  readonly #options: RunDriverOptions;
  readonly #leadership: Leadership;
  readonly #machine: DriverMachine;
  readonly #on: (event: DriverEvent) => void;
  readonly #hosts = new Map<number, Peer>();
  readonly #sockets = new Set<Socket>();
  /** Hosts that have fetched the end. */
  readonly #told = new Set<number>();
  #server: Server | undefined;
  #endpoint: Endpoint | undefined;
  /** What may be sent once the record is durable. */
  #outbox: (() => void)[] = [];
  #stored: DriverRecord | undefined;
  #storing = false;
  #over = false;
  #ending = false;
  #cancelTick: () => void = () => undefined;
  #cancelEnd: () => void = () => undefined;
  #resolve: (result: DriverResult) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(options: RunDriverOptions, leadership: Leadership, machine: DriverMachine) {
    this.#options = options;
    this.#leadership = leadership;
    this.#machine = machine;
    this.#stored = leadership.record;
    this.#on = options.on ?? (() => undefined);
    this.term = leadership.term;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // It may reject before anyone looks.
    this.result.catch(() => undefined);
    leadership.lost.addEventListener("abort", () => this.#stepDown(leadership.lost.reason));
  }

  get endpoint(): Endpoint {
    return this.#endpoint!;
  }

  async open(): Promise<void> {
    const { listen: where = {}, security, hosts, standbys = 0 } = this.#options;
    const { server, endpoint } = await listen(where, security, (socket) => this.#accept(socket));
    server.maxConnections = connectionsPerPlace * (hosts + standbys) + 16;
    this.#server = server;
    this.#endpoint = endpoint;
    const record = this.#stored;
    this.#on({ kind: "lead", term: this.term, endpoint, resumed: record !== undefined });
    this.#settle([]);
  }

  stop(): void {
    this.#operate(() => this.#machine.requestStop());
  }

  suspect(hosts: readonly number[], reason: string): void {
    this.#operate((now) => this.#machine.suspect(hosts, reason, now));
  }

  admit(host: number): void {
    this.#operate((now) => this.#machine.admit(host, now));
  }

  update(version: number, options: { readonly urgent?: boolean } = {}): void {
    this.#operate((now) => this.#machine.update(version, now, options));
  }

  #operate(act: (now: Seconds) => void): void {
    if (this.#over) return;
    act(this.#options.clock.now());
    this.#settle([]);
  }

  async close(): Promise<void> {
    await this.#finish();
    this.#reject(new TriremeError("DRIVER", "this driver was closed before the run had ended"));
  }

  #accept(socket: Socket): void {
    const { run, security, messageLimit, clock } = this.#options;
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    let peer: Peer | undefined;
    openConnection(socket, {
      role: "driver",
      run,
      security,
      clock,
      ...(messageLimit === undefined ? {} : { messageLimit }),
      open: (connection) => {
        peer = { connection };
      },
      message: (text) => {
        if (peer !== undefined && !this.#over) this.#hear(peer, parseAgentMessage(text));
      },
      closed: (reason) => {
        if (reason !== undefined) this.#on({ kind: "refuse", reason: reason.message });
        const host = peer?.host;
        if (host === undefined || this.#hosts.get(host) !== peer) return;
        this.#hosts.delete(host);
        this.#on({ kind: "disconnect", host });
        this.#checkEnd();
      },
    });
  }

  #hear(peer: Peer, message: AgentMessage): void {
    const { clock } = this.#options;
    if (message.kind === "join") {
      const refusal = this.#machine.join(message, clock.now());
      if (refusal === undefined) this.#welcome(peer, message.host);
      else this.#refuse(peer, refusal.refuse);
      return;
    }
    if (message.host !== peer.host) {
      throw new TriremeError(
        "PROTOCOL",
        `a ${message.kind} of host ${message.host} from ${peer.host === undefined ? "an agent that has not joined" : `host ${peer.host}`}`,
      );
    }
    if (message.kind !== "report") {
      this.#on(message);
      return;
    }
    let answer: Answer | undefined;
    try {
      answer = this.#machine.report(message, clock.now());
    } catch (error) {
      // A host knows a generation that this record does not: another driver has gone on from it.
      this.#stepDown(error);
      return;
    }
    if (answer === undefined) {
      peer.connection.close();
      return;
    }
    this.#settle([
      () => {
        this.#send(peer, answer);
        if (answer.end !== undefined) this.#told.add(message.host);
      },
    ]);
  }

  #welcome(peer: Peer, host: number): void {
    const before = this.#hosts.get(host);
    peer.host = host;
    this.#hosts.set(host, peer);
    // The newest agent is the host's: an old connection may be one that nobody is at the end of.
    if (before !== undefined && before !== peer) {
      this.#refuse(before, `another agent has joined as host ${host}`);
    }
    this.#on({ kind: "join", host });
    const { heartbeat, lease } = this.#options;
    const welcome = { kind: "welcome", term: this.term, heartbeat } as const;
    const bound = lease === undefined ? welcome : { ...welcome, lease };
    this.#settle([() => this.#send(peer, bound)]);
  }

  #refuse(peer: Peer, reason: string): void {
    this.#on({ kind: "refuse", reason });
    this.#send(peer, { kind: "refuse", reason });
    peer.connection.close();
  }

  #send({ connection }: Peer, message: DriverMessage): void {
    connection.send(JSON.stringify(message));
  }

  /** Makes the record durable, then sends; what comes meanwhile waits for the next turn. */
  #settle(sends: readonly (() => void)[]): void {
    this.#outbox.push(...sends);
    if (!this.#storing) void this.#flush();
    this.#cancelTick();
    const { clock } = this.#options;
    if (this.#over) return;
    this.#cancelTick = clock.after(this.#machine.next - clock.now(), () => {
      this.#machine.tick(clock.now());
      this.#settle([]);
    });
  }

  async #flush(): Promise<void> {
    this.#storing = true;
    try {
      while (!this.#over && (this.#outbox.length > 0 || this.#machine.record !== this.#stored)) {
        const { record } = this.#machine;
        const before = this.#stored;
        const sends = this.#outbox;
        this.#outbox = [];
        if (record !== before) {
          await this.#leadership.append(record);
          this.#stored = record;
        }
        if (this.#over) return;
        for (const send of sends) send();
        if (record === before) continue;
        const changes = changesOf(before, record);
        for (const change of changes) this.#on(change);
        // Nobody need wait for a heartbeat to learn of it.
        if (changes.some(({ kind }) => kind !== "progress")) this.#ask();
      }
      if (this.#machine.record.end !== undefined) this.#beginEnd();
    } catch (error) {
      this.#stepDown(error);
    } finally {
      this.#storing = false;
    }
  }

  #ask(): void {
    for (const peer of this.#hosts.values()) this.#send(peer, { kind: "ask" });
  }

  /** The end is durable: waits for the agents to fetch it. */
  #beginEnd(): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#cancelTick();
    const { endDeadline = 30, clock } = this.#options;
    this.#cancelEnd = clock.after(endDeadline, () => this.#conclude());
    this.#checkEnd();
  }

  #checkEnd(): void {
    if (!this.#ending || this.#over) return;
    if (this.#untold().length === 0 && this.#hosts.size === 0) this.#conclude();
  }

  #untold(): readonly number[] {
    const { hosts, controller } = this.#machine.record;
    return [...hosts.keys()].filter(
      (host) => !this.#told.has(host) && controller?.evicted.has(host) !== true,
    );
  }

  #conclude(): void {
    const { end } = this.#machine.record;
    if (end === undefined || this.#over) return;
    const result: DriverResult = { ...end, unreached: this.#untold() };
    void this.#finish().then(() => this.#resolve(result), this.#reject);
  }

  #stepDown(reason: unknown): void {
    if (this.#over) return;
    void this.#finish().then(() => this.#reject(reason), this.#reject);
  }

  async #finish(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#cancelTick();
    this.#cancelEnd();
    this.#server?.close();
    for (const { connection } of this.#hosts.values()) connection.close();
    // Those who have not joined, and those who do not hang up.
    for (const socket of this.#sockets) socket.destroySoon();
    await this.#leadership.release();
  }
}
