/**
 * TFRecord framing: length (u64), masked CRC-32C of the length, data, masked CRC-32C of the data, all
 * little-endian. https://www.tensorflow.org/tutorials/load_data/tfrecord
 */
import { TriremeError } from "@trireme/core";
import { maskedCrc32c } from "./crc32c.ts";

const headBytes = 12;

/** A record around the data. */
export function frameRecord(data: Uint8Array): Uint8Array<ArrayBuffer> {
  const record = new Uint8Array(headBytes + data.length + 4);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, headBytes);
  view.setUint32(headBytes + data.length, maskedCrc32c(data), true);
  return record;
}

/**
 * The data of each record of a file, checked. A last record that is cut short is left out, as a crash
 * while it is written leaves it.
 * @throws TriremeError "RECORD" where a checksum differs.
 */
export function* readRecords(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + headBytes <= bytes.length;) {
    const start = at + headBytes;
    check(bytes.subarray(at, at + 8), view.getUint32(at + 8, true), `length at ${at}`);
    const length = Number(view.getBigUint64(at, true));
    if (start + length + 4 > bytes.length) return;
    const data = bytes.subarray(start, start + length);
    check(data, view.getUint32(start + length, true), `record at ${at}`);
    yield data;
    at = start + length + 4;
  }
}

function check(bytes: Uint8Array, said: number, what: string): void {
  const found = maskedCrc32c(bytes);
  if (found === said) return;
  const [is, was] = [found, said].map((crc) => crc.toString(16).padStart(8, "0"));
  throw new TriremeError("RECORD", `the ${what} has masked CRC-32C ${is}; the file says ${was}`);
}
