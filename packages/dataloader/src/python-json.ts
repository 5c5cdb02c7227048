/**
 * JSON as Python's `json.dumps` writes it (spaces after separators, ASCII only, floats by `repr`), for
 * formats whose bytes were defined by that.
 */

/** A value that JSON can hold. */
export type JsonValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** The text of a value; keys of objects in code point order where `sorted`, else as they stand. */
export function pythonJson(value: JsonValue, sorted = false): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number")
    return Number.isInteger(value) && !Object.is(value, -0) && Math.abs(value) < 2 ** 53
      ? String(value)
      : pythonFloat(value);
  if (typeof value === "string") return pythonString(value);
  if (isList(value)) return `[${value.map((item) => pythonJson(item, sorted)).join(", ")}]`;
  const entries = Object.entries(value);
  if (sorted) entries.sort(([a], [b]) => compare(a, b));
  return `{${entries.map(([key, item]) => `${pythonString(key)}: ${pythonJson(item, sorted)}`).join(", ")}}`;
}

/** A float as Python's `repr` has it: shortest digits, an exponent below 1e-4 and from 1e16 on. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (Object.is(value, -0)) return "-0.0";
  const [mantissa = "", exponentText = ""] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (value !== 0 && (exponent < -4 || exponent >= 16)) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  // In between, where JavaScript may already use an exponent (1e-7) or drop the fraction (3).
  const plain =
    exponent < 0
      ? value.toFixed(mantissa.replace(/[-.]/g, "").length - 1 - exponent)
      : String(value);
  return plain.includes(".") ? plain : `${plain}.0`;
}

function pythonString(text: string): string {
  // What JSON.stringify leaves as it is and Python escapes: DEL and all beyond ASCII, by UTF-16 unit.
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function isList(value: object): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function compare(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  const at = x.findIndex((point, i) => point !== y[i]);
  if (at === -1) return x.length - y.length;
  return y[at] === undefined ? 1 : x[at]!.codePointAt(0)! - y[at].codePointAt(0)!;
}
