/** Labelled values in columns, wrapped to the width of the terminal. */
import { type Terminal, bold, dim } from "../terminal.ts";

/** A label, a value, and what to know about it. */
export interface Field {
  readonly label: string;
  readonly value: string;
  readonly note?: string;
}

const labelWidth = 15;
/** Least width of a column of notes: where there is less, notes go below their values. */
const leastNote = 16;

/**
 * Fields as lines: labels dim in a column of their own, notes in a column after the values, longer
 * notes below. No line is wider than the terminal unless a single word is.
 */
export function fields(terminal: Terminal, list: readonly Field[]): string {
  const noted = list.filter((field) => field.note !== undefined);
  const valueWidth = Math.max(0, ...noted.map((field) => field.value.length));
  return list
    .map(({ label, value, note }) => {
      const head = dim(terminal, label.padEnd(labelWidth));
      if (note === undefined)
        return hang(head, labelWidth, wrap(value, terminal.columns - labelWidth));
      const indent = labelWidth + valueWidth + 2;
      if (terminal.columns - indent < leastNote) {
        const below = wrap(note, terminal.columns - labelWidth).map((line) => dim(terminal, line));
        return hang(head, labelWidth, [...wrap(value, terminal.columns - labelWidth), ...below]);
      }
      const lines = wrap(note, terminal.columns - indent).map((line) => dim(terminal, line));
      return hang(`${head}${value.padEnd(valueWidth)}  `, indent, lines);
    })
    .join("");
}

function hang(head: string, indent: number, lines: readonly string[]): string {
  const [first = "", ...rest] = lines;
  const below = rest.map((line) => `${" ".repeat(indent)}${line}\n`);
  return `${`${head}${first}`.trimEnd()}\n${below.join("")}`;
}

/** Breaks text at spaces into lines of at most `width` letters. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** A heading, with an empty line before it. */
export function heading(terminal: Terminal, text: string): string {
  return `\n${bold(terminal, text)}\n`;
}
