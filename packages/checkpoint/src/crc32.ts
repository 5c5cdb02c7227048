/**
 * CRC-32 as in zip, PNG and zlib (reflected, polynomial 0xEDB88320), so that a native one may stand in
 * (`zlib.crc32` of Node and of Python). Sixteen bytes a turn by tables (Kounavis and Berry, A systematic
 * approach to building high performance software-based CRC generators, ISCC 2005).
 */

const slices = 16;
/** tables[k · 256 + b]: the checksum of byte b followed by k zero bytes. */
const tables = new Uint32Array(slices * 256);
for (let byte = 0; byte < 256; byte++) {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  tables[byte] = crc;
}
for (let i = 256; i < tables.length; i++) {
  const crc = tables[i - 256]!;
  tables[i] = tables[crc & 255]! ^ (crc >>> 8);
}

/** The checksum of the bytes; given that of what came before, of both together. */
export function crc32(bytes: Uint8Array, before = 0): number {
  const t = tables;
  let crc = ~before;
  let i = 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const end = bytes.length - 15; i < end; i += 16) {
    const a = view.getInt32(i, true) ^ crc;
    const b = view.getInt32(i + 4, true);
    const c = view.getInt32(i + 8, true);
    const d = view.getInt32(i + 12, true);
    crc =
      t[3840 + (a & 255)]! ^
      t[3584 + ((a >>> 8) & 255)]! ^
      t[3328 + ((a >>> 16) & 255)]! ^
      t[3072 + (a >>> 24)]! ^
      t[2816 + (b & 255)]! ^
      t[2560 + ((b >>> 8) & 255)]! ^
      t[2304 + ((b >>> 16) & 255)]! ^
      t[2048 + (b >>> 24)]! ^
      t[1792 + (c & 255)]! ^
      t[1536 + ((c >>> 8) & 255)]! ^
      t[1280 + ((c >>> 16) & 255)]! ^
      t[1024 + (c >>> 24)]! ^
      t[768 + (d & 255)]! ^
      t[512 + ((d >>> 8) & 255)]! ^
      t[256 + ((d >>> 16) & 255)]! ^
      t[d >>> 24]!;
  }
  for (; i < bytes.length; i++) crc = t[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8);
  return ~crc >>> 0;
}
