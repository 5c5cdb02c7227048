import { readFileSync } from "node:fs";

/** A file of `vectors/`. */
export function vector(name: string): string {
  return readFileSync(new URL(`./vectors/${name}`, import.meta.url), "utf8");
}

/** The text with its first `from` replaced; `from` must be there, or the test would test nothing. */
export function edit(text: string, from: string | RegExp, to: string): string {
  const edited = text.replace(from, to);
  if (edited === text) throw new Error(`nothing to edit: ${String(from)}`);
  return edited;
}

/** The text up to the first `from`, which goes too. */
export function cut(text: string, from: string | RegExp): string {
  const at = typeof from === "string" ? text.indexOf(from) : text.search(from);
  if (at < 0) throw new Error(`nothing to cut at: ${String(from)}`);
  return text.slice(0, at);
}
