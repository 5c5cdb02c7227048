/**
 * An agent's connection to whichever driver leads: tries each in turn, joins, beats, and starts over
 * when it breaks or nobody answers. Orders of a driver with a smaller term than one met before are
 * not taken: it has been taken over, and may not know.
 */
import type { TriremeError, Seconds } from "@trireme/core";
import type { Endpoint } from "../../driver/launch.ts";
import type { AgentMessage, Join, Welcome } from "../../driver/message.ts";
import { parseDriverMessage } from "../../driver/parse-message.ts";
import type { Clock } from "./clock.ts";
import { type Connection, openConnection } from "./connection.ts";
import { dial } from "./listen.ts";
import type { Security } from "./security.ts";

export interface DriverLinkOptions {
  readonly run: string;
  readonly drivers: readonly Endpoint[];
  readonly security: Security;
  readonly clock: Clock;
  readonly lostDeadline: Seconds;
  readonly join: () => Join;
  /** A heartbeat is due. */
  readonly beat: () => void;
  readonly message: (text: string) => void;
  readonly connected: (driver: Endpoint, welcome: Welcome) => void;
  readonly disconnected: (reason: string) => void;
  /** No driver for the deadline. */
  readonly lost: (reason: string) => void;
  readonly refused: (reason: string) => void;
}

/** Time for one attempt, and the pauses between rounds of attempts. */
const dialDeadline: Seconds = 5;
const shortestPause: Seconds = 0.05;
const longestPause: Seconds = 2;
/** Heartbeats without any answer after which the connection is given up. */
const unanswered = 8;
/** Bytes that may wait for the network before lines and numbers are no longer taken. */
const mostPending = 4 << 20;

export class DriverLink {
  readonly #options: DriverLinkOptions;
  #connection: Connection | undefined;
  /** Whether the driver has welcomed us on this connection. */
  #joined = false;
  #term = 0;
  #heartbeat: Seconds = 1;
  #heard: Seconds;
  #beats = 0;
  #closed = false;
  #next = 0;
  #pause = shortestPause;
  #why = "not tried yet";
  #cancelBeat: () => void = () => undefined;
  #cancelLost: () => void = () => undefined;
  #cancelPause: () => void = () => undefined;

  constructor(options: DriverLinkOptions) {
    this.#options = options;
    this.#heard = options.clock.now();
  }

  open(): void {
    this.#heard = this.#options.clock.now();
    this.#watch();
    void this.#dial();
  }

  close(): void {
    this.#closed = true;
    this.#cancelBeat();
    this.#cancelLost();
    this.#cancelPause();
    this.#connection?.close();
  }

  /** Sends a report; false where there is no driver: the next one says the same and more. */
  send(message: AgentMessage): boolean {
    if (!this.#joined || this.#connection === undefined) return false;
    this.#connection.send(JSON.stringify(message));
    return true;
  }

  /** Sends what may be lost; false where it is. */
  offer(message: AgentMessage): boolean {
    const connection = this.#connection;
    if (connection === undefined || connection.pending > mostPending) return false;
    return this.send(message);
  }

  async #dial(): Promise<void> {
    const { drivers, security, clock, run } = this.#options;
    const driver = drivers[this.#next % drivers.length]!;
    this.#next++;
    try {
      const socket = await dial(driver, security, dialDeadline, clock);
      if (this.#closed) {
        socket.destroy();
        return;
      }
      openConnection(socket, {
        role: "agent",
        run,
        security,
        clock,
        open: (connection) => {
          // Closed during the handshake: nobody would ever close this one.
          if (this.#closed) {
            connection.close();
            return;
          }
          this.#connection = connection;
          this.#beats = 0;
          connection.send(JSON.stringify(this.#options.join()));
        },
        message: (text) => this.#take(driver, text),
        closed: (reason) => this.#broken(reason),
      });
    } catch (error) {
      this.#retry(error instanceof Error ? error.message : String(error));
    }
  }

  #take(driver: Endpoint, text: string): void {
    const { clock, connected, refused, message } = this.#options;
    if (this.#closed) return;
    if (this.#joined) {
      this.#heard = clock.now();
      this.#beats = 0;
      message(text);
      return;
    }
    const first = parseDriverMessage(text);
    if (first.kind === "refuse") refused(`the driver refused: ${first.reason}`);
    else if (first.kind !== "welcome") this.#connection?.close();
    else if (first.term < this.#term) {
      this.#why = `the driver has term ${first.term}, but one of term ${this.#term} leads`;
      this.#connection?.close();
    } else {
      this.#heard = clock.now();
      this.#term = first.term;
      this.#heartbeat = first.heartbeat;
      this.#joined = true;
      this.#pause = shortestPause;
      connected(driver, first);
      this.#beat();
    }
  }

  #beat(): void {
    const { clock, beat } = this.#options;
    this.#cancelBeat();
    this.#cancelBeat = clock.after(this.#heartbeat, () => {
      if (++this.#beats > unanswered) {
        this.#why = `no answer to ${unanswered} heartbeats`;
        this.#connection?.close();
        return;
      }
      beat();
      this.#beat();
    });
  }

  #broken(reason: TriremeError | undefined): void {
    if (this.#closed) return;
    const was = this.#joined;
    this.#connection = undefined;
    this.#joined = false;
    this.#cancelBeat();
    const why = reason?.message ?? (was ? "the driver closed the connection" : this.#why);
    if (was) this.#options.disconnected(why);
    this.#retry(why);
  }

  #retry(why: string): void {
    if (this.#closed) return;
    this.#why = why;
    const { clock, drivers } = this.#options;
    const round = this.#next % drivers.length === 0;
    if (round) this.#pause = Math.min(2 * this.#pause, longestPause);
    this.#cancelPause = clock.after(round ? this.#pause : 0, () => void this.#dial());
  }

  /** One timer for the whole wait, set anew only when it fires early. */
  #watch(): void {
    const { clock, lostDeadline, drivers, lost } = this.#options;
    const left = this.#heard + lostDeadline - clock.now();
    this.#cancelLost = clock.after(left, () => {
      if (clock.now() - this.#heard < lostDeadline) {
        this.#watch();
        return;
      }
      const names = drivers.map(({ address, port }) => `${address}:${port}`).join(", ");
      lost(`no driver at ${names} for ${lostDeadline} s (last: ${this.#why})`);
    });
  }
}
