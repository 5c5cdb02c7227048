/**
 * The agent of a host: keeps in touch with whichever driver leads, starts the workers that it orders,
 * watches them, and takes them down. It decides nothing but what `AgentMachine` says.
 */
import { randomUUID } from "node:crypto";
import type { Seconds } from "@trireme/core";
import type { Order } from "@trireme/fault-tolerance";
import { type AgentAction, AgentMachine } from "../../driver/agent-machine.ts";
import type { Endpoint, Launch } from "../../driver/launch.ts";
import type { Answer, DriverMessage, Failure, RunEnd } from "../../driver/message.ts";
import { parseDriverMessage } from "../../driver/parse-message.ts";
import { GenerationLoader } from "../generation-loader.ts";
import type { AgentEvent, AgentOptions } from "./agent.ts";
import { type Clock, monotonicClock } from "./clock.ts";
import { DriverLink } from "./driver-link.ts";
import { type Guard, startGuard } from "./guard.ts";
import { HostGeneration } from "./host-generation.ts";
import { Lease } from "./lease.ts";
import { freePort } from "./listen.ts";
import { LogForwarder } from "./log-forwarder.ts";
import { killTree } from "./process-tree.ts";

/** Time that leftovers of an earlier agent may outlive SIGKILL. */
const leftoverDeadline: Seconds = 30;

export class HostAgent {
  readonly #options: AgentOptions;
  readonly #clock: Clock;
  readonly #incarnation: string = randomUUID();
  readonly #machine: AgentMachine;
  readonly #mark: string;
  readonly #link: DriverLink;
  readonly #logs: LogForwarder;
  readonly #lease: Lease;
  readonly #address: string;
  readonly #on: (event: AgentEvent) => void;
  #endpoint: Endpoint;
  #guard: Guard | undefined;
  readonly #loaders: GenerationLoader;
  #generation: HostGeneration | undefined;
  /** The end of all generations so far. */
  #down: Promise<unknown> = Promise.resolve();
  #leaving: Promise<void> | undefined;
  #over = false;
  #settle: { resolve: (end: RunEnd) => void; reject: (error: unknown) => void } | undefined;

  constructor(options: AgentOptions) {
    const { host, ranks, run, clock = monotonicClock } = options;
    const address = (this.#address = options.address ?? "127.0.0.1");
    this.#options = options;
    this.#clock = clock;
    this.#on = options.on ?? (() => undefined);
    this.#machine = new AgentMachine({ host, incarnation: this.#incarnation, ranks });
    this.#loaders = new GenerationLoader((generation, error) => {
      if (this.#generation?.number === generation) this.#generation.loaderFailed(error);
    });
    // Its own, so that the guard of an agent that died does not take the workers of the next one.
    this.#mark = `${run}/${host}/${this.#incarnation}`;
    this.#endpoint = { address, port: 1 };
    this.#link = new DriverLink({
      ...options,
      clock,
      lostDeadline: options.lostDeadline ?? 600,
      join: () => ({
        kind: "join",
        host,
        incarnation: this.#incarnation,
        ranks,
        endpoint: this.#endpoint,
      }),
      beat: () => this.#report(),
      message: (text) => this.#take(parseDriverMessage(text)),
      connected: (driver, { term, lease = Infinity }) => {
        this.#lease.reconnected(lease);
        this.#on({ kind: "connect", driver, term });
        this.#report();
      },
      disconnected: (reason) => this.#on({ kind: "disconnect", reason }),
      lost: (reason) => this.end({ ok: false, reason, step: 0 }),
      refused: (reason) => this.end({ ok: false, reason, step: 0 }),
    });
    this.#lease = new Lease(clock, (seconds) => this.#leaseOver(seconds));
    this.#logs = new LogForwarder(clock, (rank, stream, lines, dropped) => {
      const { generation } = this.#machine;
      const message = { kind: "log", host, generation, rank, stream, lines, dropped } as const;
      return this.#link.offer(message);
    });
  }

  async live(): Promise<RunEnd> {
    const result = new Promise<RunEnd>((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    try {
      const { run, host } = this.#options;
      // Of whatever agent this host had in this run before.
      const leftovers = { mark: `${run}/${host}/`, groups: new Set<number>() };
      await killTree(leftovers, 0, leftoverDeadline, this.#clock);
      await this.#newPort();
      this.#guard = startGuard(this.#mark);
      if (!this.#over) this.#link.open();
    } catch (error) {
      this.#fail(error);
    }
    return await result;
  }

  /** Ends this agent: workers down, connection closed, guard sent home. */
  end(end: RunEnd): void {
    if (this.#over) return;
    this.#over = true;
    void this.#takeDown().then(
      () => {
        this.#goAway();
        this.#settle?.resolve(end);
      },
      (error: unknown) => {
        this.#goAway();
        this.#settle?.reject(error);
      },
    );
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#goAway();
    this.#settle?.reject(error);
  }

  #goAway(): void {
    this.#loaders.close();
    this.#logs.flush();
    this.#link.close();
    this.#guard?.dismiss();
  }

  #report(): void {
    if (!this.#over && this.#link.send(this.#machine.report(this.#endpoint))) {
      this.#lease.reported();
    }
  }

  #take(message: DriverMessage): void {
    if (this.#over || message.kind === "welcome" || message.kind === "refuse") return;
    if (message.kind === "ask") this.#report();
    else this.#obey(message);
  }

  #obey(answer: Answer): void {
    this.#lease.answered(answer.order.kind === "train");
    const holding = this.#machine.report(this.#endpoint).bound !== undefined;
    const action = this.#machine.receive(answer);
    this.#carryOut(action);
    // A bound is told as soon as it is known: ranks may be waiting.
    if (!holding && answer.stop !== undefined && action.kind !== "end") this.#report();
  }

  #carryOut(action: AgentAction): void {
    switch (action.kind) {
      case "none":
        return;
      case "start":
        this.#start(action.launch, action.order);
        return;
      case "leave":
        this.#leave(action.check);
        return;
      case "end":
        this.end(action.end);
        return;
      case "release":
        this.#generation?.release();
    }
  }

  #start(launch: Launch, order: Order & { kind: "train" }): void {
    const { host } = this.#options;
    this.#on({ kind: "start", launch, step: order.step });
    this.#generation = new HostGeneration({
      agent: this.#options,
      machine: this.#machine,
      loaders: this.#loaders,
      clock: this.#clock,
      mark: this.#mark,
      launch,
      order,
      changed: () => this.#report(),
      failed: (failure) => this.#failed(failure),
      metrics: (rank, word) =>
        this.#link.offer({ ...word, host, generation: launch.generation, rank }),
      line: (rank, stream, line) => {
        this.#on({ kind: "log", rank, stream, line });
        this.#logs.add(rank, stream, line);
      },
    });
    this.#report();
  }

  #failed(failure: Failure): void {
    if (this.#over || this.#leaving !== undefined) return;
    this.#machine.failed(failure);
    this.#on({ kind: "failure", failure });
    this.#report();
  }

  /** Nobody has driven this host for too long: its workers go, and it says so until it is ordered on. */
  #leaseOver(seconds: Seconds): void {
    this.#failed({ kind: "lease", rank: this.#machine.rank(0), seconds });
    void this.#takeDown().catch((error: unknown) => this.#fail(error));
  }

  #leave(check: boolean): void {
    if (this.#leaving !== undefined) return;
    this.#on({ kind: "leave", generation: this.#machine.generation });
    this.#leaving = this.#comeAway(check)
      .then((unfit) => {
        this.#leaving = undefined;
        this.#machine.left(unfit);
        this.#report();
      })
      .catch((error: unknown) => this.#fail(error));
  }

  async #comeAway(check: boolean): Promise<string | undefined> {
    await this.#takeDown();
    await this.#newPort();
    if (!check) return undefined;
    try {
      return await this.#options.check?.();
    } catch (error) {
      return `its self-check failed: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** Resolves once nothing lives, of a generation that is being taken down already as well. */
  async #takeDown(): Promise<void> {
    const generation = this.#generation;
    this.#generation = undefined;
    this.#lease.end();
    this.#down = Promise.all([this.#down, generation?.takeDown(this.#options.grace ?? 5)]);
    await this.#down;
  }

  /** A new one for each generation: rank 0 of the one before may have left its own in TIME_WAIT. */
  async #newPort(): Promise<void> {
    this.#endpoint = { address: this.#address, port: await freePort(this.#address) };
  }
}
