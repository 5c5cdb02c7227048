/**
 * Slurm's host lists: names with bracketed ranges, `gpu[001-016,020],login1`, where a range keeps the
 * zeros in front and several brackets multiply.
 */

/** The most names one list may stand for: a slip such as `[0-99999999]` is not a cluster. */
const limit = 1_000_000;

/** A list that cannot be read; the reader of the file adds the line. */
export type HostList =
  | { readonly ok: true; readonly names: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/** The names that a host list stands for, in order. */
export function expandHostList(list: string): HostList {
  const names: string[] = [];
  for (const item of splitItems(list)) {
    const expanded = expandItem(item);
    if (!expanded.ok) return expanded;
    if (names.length + expanded.names.length > limit) {
      return { ok: false, reason: `host list "${list}" stands for more than ${limit} names` };
    }
    for (const name of expanded.names) names.push(name);
  }
  return { ok: true, names };
}

/** Splits at commas outside brackets. */
function splitItems(list: string): string[] {
  return list.split(/,(?![^[]*\])/);
}

function expandItem(item: string): HostList {
  let names = [""];
  const pattern = /([^[\]]*)(?:\[([^[\]]*)\])?/gy;
  while (pattern.lastIndex < item.length) {
    const at = pattern.lastIndex;
    const [whole = "", text = "", ranges] = pattern.exec(item) ?? [];
    if (whole === "") {
      return { ok: false, reason: `host list "${item}" has an unmatched "${item[at]}"` };
    }
    names = names.map((name) => name + text);
    if (ranges === undefined) continue;
    const numbers = expandRanges(item, ranges);
    if (!numbers.ok) return numbers;
    if (names.length * numbers.names.length > limit) {
      return { ok: false, reason: `host list "${item}" stands for more than ${limit} names` };
    }
    names = names.flatMap((name) => numbers.names.map((number) => name + number));
  }
  if (item === "") return { ok: false, reason: "host list has an empty name" };
  return { ok: true, names };
}

function expandRanges(item: string, ranges: string): HostList {
  const numbers: string[] = [];
  for (const range of ranges.split(",")) {
    const [, low, high = low] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    if (low === undefined || high === undefined) {
      return { ok: false, reason: `host list "${item}": "${range}" is no range such as 001-016` };
    }
    const [first, last] = [Number(low), Number(high)];
    if (last < first || last - first >= limit) {
      return {
        ok: false,
        reason: `host list "${item}": range ${range} runs backwards or over more than ${limit} numbers`,
      };
    }
    for (let n = first; n <= last; n++) numbers.push(String(n).padStart(low.length, "0"));
  }
  return { ok: true, names: numbers };
}
