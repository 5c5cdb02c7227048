/**
 * Token and position embedding: rows gathered forward, scattered backward in the order of the
 * batch, so that sums have the same bits each time. A token below 0 stands for "not in this table"
 * (a vocabulary shard, padding): it gives only the position's row and receives no gradient.
 */

import { accumulate, add, fill } from "./elementwise";

/** y[batch * sequence, width] = table[token] + positions[s]; positions 0 means none. */
export function embeddingForward(
  tokens: usize,
  positions: usize,
  table: usize,
  y: usize,
  batch: i32,
  sequence: i32,
  width: i32,
): void {
  const bytes = (<usize>width) << 2;
  for (let b = 0; b < batch; b++) {
    for (let s = 0; s < sequence; s++) {
      const token = load<i32>(tokens);
      const position = positions + <usize>s * bytes;
      const row = table + <usize>token * bytes;
      if (token >= 0 && positions != 0) add(row, position, y, width);
      else if (token >= 0) memory.copy(y, row, bytes);
      else if (positions != 0) memory.copy(y, position, bytes);
      else fill(y, 0, width);
      tokens += 4;
      y += bytes;
    }
  }
}

/** dtable[token] += dy, dpositions[s] += dy (0 means none). */
export function embeddingBackward(
  tokens: usize,
  dy: usize,
  dtable: usize,
  dpositions: usize,
  batch: i32,
  sequence: i32,
  width: i32,
): void {
  const bytes = (<usize>width) << 2;
  for (let b = 0; b < batch; b++) {
    for (let s = 0; s < sequence; s++) {
      const token = load<i32>(tokens);
      if (token >= 0) accumulate(dy, dtable + <usize>token * bytes, width);
      if (dpositions != 0) accumulate(dy, dpositions + <usize>s * bytes, width);
      tokens += 4;
      dy += bytes;
    }
  }
}
