/**
 * Frames on a byte stream: a length of four bytes, big-endian, then so many bytes. A length above
 * the limit is refused before a byte of the frame is kept.
 */
import { TriremeError } from "@trireme/core";

const headerBytes = 4;

/** A frame around a payload. */
export function frame(payload: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(headerBytes + payload.length);
  out.writeUInt32BE(payload.length);
  out.set(payload, headerBytes);
  return out;
}

/** Puts the frames of a stream together again, from pieces cut anywhere. */
export class FrameReader {
  /** Greatest payload taken, in bytes; may change between frames. */
  limit: number;
  #pieces: Buffer[] = [];
  #held = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  push(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#held += piece.length;
  }

  /**
   * The next whole payload, or undefined until more has come.
   * @throws TriremeError "PROTOCOL" for a length above the limit.
   */
  next(): Buffer | undefined {
    if (this.#held < headerBytes) return undefined;
    // Joined once per frame: a frame in n pieces costs n, not n², as the length is known after four bytes.
    let first = this.#pieces[0]!;
    if (first.length < headerBytes) first = this.#join();
    const length = first.readUInt32BE();
    if (length > this.limit) {
      throw new TriremeError(
        "PROTOCOL",
        `a message of ${length} bytes, but at most ${this.limit} are taken`,
      );
    }
    const whole = headerBytes + length;
    if (this.#held < whole) return undefined;
    if (first.length < whole) first = this.#join();
    this.#pieces[0] = first.subarray(whole);
    if (first.length === whole) this.#pieces.shift();
    this.#held -= whole;
    return first.subarray(headerBytes, whole);
  }

  #join(): Buffer {
    const joined = Buffer.concat(this.#pieces);
    this.#pieces = [joined];
    return joined;
  }
}
