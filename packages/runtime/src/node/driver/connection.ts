/**
 * One authenticated connection between a driver and an agent: opened with a handshake, then text
 * messages in order, each of limited size. Whatever does not fit ends it, with the reason.
 *
 * Handshake: the agent says version, run and a nonce; the driver the same; with a token the agent
 * proves that it has it, then the driver. Nothing is taken from a peer before it has proved itself.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { TriremeError, type Seconds } from "@trireme/core";
import { z } from "zod";
import { protocolVersion } from "../../driver/message.ts";
import { type Clock, monotonicClock } from "./clock.ts";
import { FrameReader, frame } from "./framing.ts";
import {
  MessageCode,
  type Role,
  type Security,
  type Transcript,
  codeBytes,
  isProof,
  messageKey,
  prove,
} from "./security.ts";

/** What both ends are told. */
export interface ConnectionOptions {
  readonly role: Role;
  readonly run: string;
  readonly security: Security;
  /** Greatest message taken, in bytes; default 1 MiB. */
  readonly messageLimit?: number;
  /** Time for the handshake; default 10 s. */
  readonly handshakeDeadline?: Seconds;
  readonly clock?: Clock;
  /** The peer has proved itself. */
  readonly open: (connection: Connection) => void;
  readonly message: (text: string) => void;
  /** Called once, after which nothing more comes; the error says why, where it was not simply closed. */
  readonly closed: (reason: TriremeError | undefined) => void;
}

export interface Connection {
  /** Sends a message; after the close it goes nowhere. */
  send(text: string): void;
  /** Bytes that the network has not taken yet. */
  readonly pending: number;
  /** Closes, after what was sent. */
  close(): void;
}

/** A hello or a proof is small: a stranger may not make us hold more. */
const handshakeLimit = 1024;
const nonceBytes = 16;

const hello = z.strictObject({
  protocol: z.literal(`trireme-driver/${protocolVersion}`),
  run: z.string(),
  nonce: z.string().regex(/^[0-9a-f]{32}$/),
});
const proof = z.strictObject({ proof: z.string().max(128) });

/** Speaks on a socket that is connected (and, with TLS, secured). */
export function openConnection(socket: Socket, options: ConnectionOptions): void {
  const { role, run, security, messageLimit = 1 << 20, handshakeDeadline = 10 } = options;
  const { clock = monotonicClock, open, message, closed } = options;
  const peer = role === "agent" ? "driver" : "agent";
  const remote = `${peer} at ${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
  const reader = new FrameReader(handshakeLimit);
  const nonce = randomBytes(nonceBytes).toString("hex");
  // TLS has codes of its own.
  const token = security.token;
  const coded = token !== undefined && security.tls === undefined;
  let transcript: Transcript | undefined;
  let state: "hello" | "proof" | "open" | "closed" = "hello";
  let outward: MessageCode | undefined;
  let inward: MessageCode | undefined;

  const end = (reason?: TriremeError): void => {
    if (state === "closed") return;
    state = "closed";
    stopWaiting();
    socket.destroy();
    closed(reason);
  };
  const refuse = (why: string): void => end(new TriremeError("PROTOCOL", `${remote}: ${why}`));
  const stopWaiting = clock.after(handshakeDeadline, () =>
    refuse(`no complete handshake within ${handshakeDeadline} s`),
  );
  const write = (value: object): void =>
    void socket.write(frame(Buffer.from(JSON.stringify(value))));
  const sayHello = (): void => write({ protocol: `trireme-driver/${protocolVersion}`, run, nonce });
  const sayProof = (): void => {
    if (token !== undefined && transcript !== undefined) {
      write({ proof: prove(token, role, transcript) });
    }
  };

  const connection: Connection = {
    send(text) {
      if (state !== "open") return;
      const payload = Buffer.from(text);
      socket.write(
        frame(outward === undefined ? payload : Buffer.concat([outward.next(payload), payload])),
      );
    },
    get pending() {
      return socket.writableLength;
    },
    close() {
      if (state === "closed") return;
      // What was sent goes out first; a peer that never takes it must not hold us.
      socket.end();
      state = "closed";
      stopWaiting();
      const cancel = clock.after(handshakeDeadline, () => socket.destroy());
      socket.once("close", cancel);
      closed(undefined);
    },
  };

  const opened = (): void => {
    stopWaiting();
    if (coded && transcript !== undefined) {
      outward = new MessageCode(messageKey(token, role, transcript));
      inward = new MessageCode(messageKey(token, peer, transcript));
    }
    reader.limit = messageLimit + (coded ? codeBytes : 0);
    state = "open";
    open(connection);
  };

  const takeHello = (payload: Buffer): void => {
    const theirs = hello.parse(JSON.parse(payload.toString()));
    if (theirs.run !== run) {
      refuse(
        `it is of the run ${JSON.stringify(theirs.run.slice(0, 64))}, this is ${JSON.stringify(run)}`,
      );
      return;
    }
    transcript =
      role === "agent"
        ? { run, agentNonce: nonce, driverNonce: theirs.nonce }
        : { run, agentNonce: theirs.nonce, driverNonce: nonce };
    if (role === "driver") sayHello();
    if (token === undefined) {
      opened();
      return;
    }
    // The agent proves first: a stranger gets no code of the driver's to guess the token from.
    if (role === "agent") sayProof();
    state = "proof";
  };

  const takeProof = (payload: Buffer): void => {
    const theirs = proof.parse(JSON.parse(payload.toString()));
    if (token === undefined || transcript === undefined) return;
    if (!isProof(theirs.proof, token, peer, transcript)) {
      refuse("it does not have the token of this run");
      return;
    }
    if (role === "driver") sayProof();
    opened();
  };

  socket.setNoDelay(true);
  socket.setKeepAlive(true, 15_000);
  socket.on("data", (piece: Buffer) => {
    try {
      reader.push(piece);
      for (;;) {
        if (state === "closed") return;
        const payload = reader.next();
        if (payload === undefined) return;
        if (state === "hello") takeHello(payload);
        else if (state === "proof") takeProof(payload);
        else message((inward?.open(payload) ?? payload).toString());
      }
    } catch (error) {
      if (error instanceof TriremeError) refuse(error.message);
      else if (state === "open") throw error;
      else refuse("its handshake is not of this protocol or version");
    }
  });
  socket.on("error", (cause) =>
    end(new TriremeError("CONNECTION", `${remote}: ${cause.message}`, { cause })),
  );
  socket.on("close", () => end());
  if (role === "agent") sayHello();
}
