/**
 * How driver and agents know each other: a shared token, mutual TLS, or both.
 *
 * Token: both draw a nonce, each proves by an HMAC over both nonces, its role and the run that it has
 * the token (a challenge and response, so that nothing recorded can be played again), and every
 * message carries an HMAC under a key of that connection and direction, and its number. The messages
 * can be read on the way, but not made, changed, left out or played again.
 * TLS: both show a certificate of the given authority; the messages cannot be read either.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { createSecureContext } from "node:tls";
import { TriremeError } from "@trireme/core";

/** Certificates of one side, PEM. */
export interface TlsIdentity {
  readonly key: string;
  readonly certificate: string;
  /** The authority that the other side's certificate must be of. */
  readonly authority: string;
  /** Name in the driver's certificate, where it is not the address that agents connect to. */
  readonly serverName?: string;
}

/** At least one of the two. */
export interface Security {
  /** A shared secret of at least 16 bytes: `openssl rand -hex 32`. */
  readonly token?: string;
  readonly tls?: TlsIdentity;
}

/** @throws TriremeError "SECURITY" where there is neither, the token is short, or the PEM is none. */
export function checkSecurity({ token, tls }: Security): void {
  if (token === undefined && tls === undefined) {
    throw new TriremeError("SECURITY", "driver and agents need a shared token or TLS identities");
  }
  const bytes = token === undefined ? leastToken : Buffer.byteLength(token);
  if (bytes < leastToken) {
    throw new TriremeError(
      "SECURITY",
      `the token has ${bytes} bytes, but at least ${leastToken} are needed; draw one with: openssl rand -hex 32`,
    );
  }
  if (tls !== undefined) checkIdentity(tls);
}

/** Else an agent would try to connect with it until it gives the driver up. */
function checkIdentity({ key, certificate, authority }: TlsIdentity): void {
  try {
    createSecureContext({ key, cert: certificate, ca: authority });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("SECURITY", `tls: key and certificates cannot be used: ${why}`, {
      cause,
    });
  }
}

const leastToken = 16;

export type Role = "agent" | "driver";

/** What both sides have said in the open. */
export interface Transcript {
  readonly run: string;
  readonly agentNonce: string;
  readonly driverNonce: string;
}

/** A role's proof that it has the token, in hex. */
export function prove(token: string, role: Role, transcript: Transcript): string {
  return derive(token, `proof of the ${role}`, transcript).toString("hex");
}

/** Whether a proof is that of the role; takes the same time whatever is wrong with it. */
export function isProof(proof: string, token: string, role: Role, transcript: Transcript): boolean {
  const expected = Buffer.from(prove(token, role, transcript));
  const given = Buffer.from(proof);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The key of the messages that a role sends on this connection. */
export function messageKey(token: string, role: Role, transcript: Transcript): Buffer {
  return derive(token, `messages of the ${role}`, transcript);
}

function derive(token: string, purpose: string, transcript: Transcript): Buffer {
  const { run, agentNonce, driverNonce } = transcript;
  // JSON keeps the parts apart: no two transcripts have one text.
  const text = JSON.stringify(["trireme driver", purpose, run, agentNonce, driverNonce]);
  return createHmac("sha256", token).update(text).digest();
}

/** Bytes of a message's code. */
export const codeBytes = 16;

/** Seals or opens the messages of one direction, in order. */
export class MessageCode {
  readonly #key: Buffer;
  #number = 0n;

  constructor(key: Buffer) {
    this.#key = key;
  }

  /** The code of the next message. */
  next(payload: Uint8Array): Buffer {
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(this.#number++);
    const hmac = createHmac("sha256", this.#key).update(number).update(payload);
    return hmac.digest().subarray(0, codeBytes);
  }

  /** The payload of the next sealed message. @throws TriremeError "PROTOCOL" where the code is wrong. */
  open(sealed: Buffer): Buffer {
    const payload = sealed.subarray(codeBytes);
    const code = sealed.subarray(0, codeBytes);
    if (code.length < codeBytes || !timingSafeEqual(code, this.next(payload))) {
      throw new TriremeError(
        "PROTOCOL",
        "a message does not have its code: it was changed on the way",
      );
    }
    return payload;
  }
}
