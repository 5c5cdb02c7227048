/**
 * One action of a pipeline schedule and its text, in the grammar of torch.distributed.pipelining:
 * `<stage><KIND>[<microbatch>]`, as `0F0`, `2I1`, `2SEND_B2`, `1UNSHARD`; a forward and a backward
 * that run together as `(0F3;3B1)OVERLAP_F_B`.
 */
import { TriremeError, nearestName } from "@trireme/core";

/**
 * F forward, I gradient of the input, W gradient of the weights, B both at once; UNSHARD, RESHARD
 * and REDUCE_GRAD act on the weights of a whole stage; SEND and RECV move the activations of a
 * forward (F) or the gradients of a backward (B) across one stage boundary.
 */
export type ActionKind =
  | "F"
  | "I"
  | "W"
  | "B"
  | "UNSHARD"
  | "RESHARD"
  | "REDUCE_GRAD"
  | "SEND_F"
  | "RECV_F"
  | "SEND_B"
  | "RECV_B";

/** Every kind; a schedule's `kind` column holds positions in this list. */
export const actionKinds: readonly ActionKind[] = [
  "F",
  "I",
  "W",
  "B",
  "UNSHARD",
  "RESHARD",
  "REDUCE_GRAD",
  "SEND_F",
  "RECV_F",
  "SEND_B",
  "RECV_B",
];

/** Positions of the kinds in `actionKinds`, for hot loops. */
export const kindCode: {
  readonly F: 0;
  readonly I: 1;
  readonly W: 2;
  readonly B: 3;
  readonly UNSHARD: 4;
  readonly RESHARD: 5;
  readonly REDUCE_GRAD: 6;
  readonly SEND_F: 7;
  readonly RECV_F: 8;
  readonly SEND_B: 9;
  readonly RECV_B: 10;
} = {
  F: 0,
  I: 1,
  W: 2,
  B: 3,
  UNSHARD: 4,
  RESHARD: 5,
  REDUCE_GRAD: 6,
  SEND_F: 7,
  RECV_F: 8,
  SEND_B: 9,
  RECV_B: 10,
};

/** One action at the door of the package; inside, actions are columns (see `Schedule`). */
export interface Action {
  readonly stage: number;
  readonly kind: ActionKind;
  /** −1 for UNSHARD, RESHARD and REDUCE_GRAD, which act on a whole stage. */
  readonly microbatch: number;
  /** `first` and `second` mark an F and the B right after it that run at the same time. */
  readonly overlap?: "first" | "second";
}

/** The text of one action, `3F1`, `2SEND_B2`, `1UNSHARD`; an overlap mark is not printed. */
export function printAction(a: Action): string {
  return a.microbatch < 0 ? `${a.stage}${a.kind}` : `${a.stage}${a.kind}${a.microbatch}`;
}

const pattern = /^(\d+)([A-Z](?:[A-Z_]*[A-Z])?)(\d*)$/;

/**
 * The action that a text names; the inverse of `printAction`.
 * @throws TriremeError `ACTION` on anything that is not exactly one action.
 */
export function parseAction(text: string): Action {
  const match = pattern.exec(text);
  if (match === null) {
    const hint = text.startsWith("(") ? "; read overlapped pairs with parseActions" : "";
    throw new TriremeError(
      "ACTION",
      `action "${text}" is not <stage><kind>[<microbatch>], such as 0F0 or 1UNSHARD${hint}`,
    );
  }
  const [, stageText = "", kindText = "", microbatchText = ""] = match;
  const kind = actionKinds.find((k) => k === kindText);
  if (kind === undefined) {
    const near = nearestName(kindText, actionKinds) ?? actionKinds.join(", ");
    throw new TriremeError(
      "ACTION",
      `action "${text}": unknown kind ${kindText}; did you mean ${near}?`,
    );
  }
  const stage = Number(stageText);
  const microbatch = microbatchText === "" ? -1 : Number(microbatchText);
  if (stage > maxIndex || microbatch > maxIndex) {
    throw new TriremeError("ACTION", `action "${text}": indices go up to ${maxIndex}`);
  }
  if (actsOnStage(kind) !== microbatch < 0) {
    const rule = actsOnStage(kind) ? "takes no microbatch" : "needs a microbatch";
    const nearest = printAction({ stage, kind, microbatch: actsOnStage(kind) ? -1 : 0 });
    throw new TriremeError("ACTION", `action "${text}": ${kind} ${rule}, as in ${nearest}`);
  }
  return { stage, kind, microbatch };
}

/** Largest stage or microbatch that a column holds. */
const maxIndex = 2 ** 31 - 1;

function actsOnStage(kind: ActionKind): boolean {
  return kind === "UNSHARD" || kind === "RESHARD" || kind === "REDUCE_GRAD";
}

const pairPattern = /^\(([^;()]*);([^;()]*)\)OVERLAP_F_B$/;

/** Actions as text with one blank between them, overlapped pairs as `(0F3;3B1)OVERLAP_F_B`. */
export function printActions(actions: Iterable<Action>): string {
  const out: string[] = [];
  let first: Action | undefined;
  for (const a of actions) {
    if (first !== undefined) {
      if (a.overlap !== "second") throw brokenPair(first);
      out.push(`(${printAction(first)};${printAction(a)})OVERLAP_F_B`);
      first = undefined;
    } else if (a.overlap === "first") {
      first = a;
    } else if (a.overlap === "second") {
      throw brokenPair(a);
    } else {
      out.push(printAction(a));
    }
  }
  if (first !== undefined) throw brokenPair(first);
  return out.join(" ");
}

function brokenPair(a: Action): TriremeError {
  return new TriremeError(
    "ACTION",
    `${printAction(a)} is marked as half of an overlapped pair, but the other half is not beside it`,
  );
}

/**
 * The actions in a text, separated by blanks; the inverse of `printActions`.
 * @throws TriremeError `ACTION` on unknown text.
 */
export function parseActions(text: string): Action[] {
  const out: Action[] = [];
  for (const word of text.split(/\s+/)) {
    if (word === "") continue;
    const pair = pairPattern.exec(word);
    if (pair === null) {
      out.push(parseAction(word));
      continue;
    }
    const [first, second] = [parseAction(pair[1]!), parseAction(pair[2]!)];
    if (first.kind !== "F" || second.kind !== "B") {
      throw new TriremeError(
        "ACTION",
        `pair "${word}": OVERLAP_F_B joins an F and a B, in this order`,
      );
    }
    out.push({ ...first, overlap: "first" }, { ...second, overlap: "second" });
  }
  return out;
}
