/** Megatron-LM's settings of routers, in and out. */
import type { ResolvedRun } from "../resolved.ts";
import { wholeRouter } from "../router.ts";
import { present } from "./interchange.ts";
import type { Refuse, Settings } from "./megatron-experts.ts";
import type { OptionList } from "./option-list.ts";

const balancing = "moe-router-load-balancing-type";

export function routerSettings({ model, plan, router }: ResolvedRun, refuse: Refuse): Settings {
  const { experts } = model;
  if (experts === undefined) return {};
  const { scoring, balanceLoss, zLoss, scale, groups, biasRate, dropPolicy, ...rest } = wholeRouter(
    experts,
    router,
  );
  if (groups?.best !== undefined) {
    refuse("router.groups.best", groups.best, "Megatron-LM takes its own count of best experts");
  }
  for (const [field, value] of Object.entries(rest)) {
    refuse(`router.${field}`, value, "each expert drops by itself, of a rank's microbatch");
  }
  const policy = dropPolicy === "position" ? "position" : "probs";
  return {
    "moe-router-score-function": scoring === "sigmoid" ? scoring : undefined,
    "moe-router-pre-softmax": scoring === "softmax-before",
    [balancing]: balanceLoss > 0 ? "global_aux_loss" : "none",
    "moe-aux-loss-coeff": balanceLoss,
    "moe-z-loss-coeff": zLoss === 0 ? undefined : zLoss,
    "moe-router-topk-scaling-factor": scale === 1 ? undefined : scale,
    "moe-router-num-groups": groups?.groups,
    "moe-router-group-topk": groups?.keep,
    "moe-router-bias-update-rate": experts.selectionBias ? biasRate : undefined,
    "moe-token-drop-policy": plan.expertCapacity === undefined ? undefined : policy,
  };
}

export function routerOf(o: OptionList, refuse: Refuse): unknown {
  if (o.number("--num-experts") === undefined) return undefined;
  const groups = o.number("--moe-router-num-groups");
  const keep = o.number("--moe-router-group-topk");
  const capacity = o.number("--moe-expert-capacity-factor");
  const rate = o.number("--moe-router-bias-update-rate");
  return present({
    scoring: scoringOf(o, refuse),
    balanceLoss: balanceOf(o, refuse),
    zLoss: o.number("--moe-z-loss-coeff"),
    scale: o.number("--moe-router-topk-scaling-factor"),
    groups: groups === undefined ? undefined : present({ groups, keep }),
    biasRate: o.flag("--moe-router-enable-expert-bias") ? rate : undefined,
    dropPolicy: dropPolicyOf(o, refuse, capacity),
  });
}

function scoringOf(o: OptionList, refuse: Refuse): string | undefined {
  const before = o.flag("--moe-router-pre-softmax");
  const name = o.text("--moe-router-score-function") ?? "softmax";
  if (name === "sigmoid") return name;
  if (name === "softmax") return before ? "softmax-before" : "softmax-after";
  return refuse("--moe-router-score-function", name, "only softmax and sigmoid");
}

function balanceOf(o: OptionList, refuse: Refuse): number | undefined {
  const kind = o.text(`--${balancing}`) ?? "aux_loss";
  const coefficient = o.number("--moe-aux-loss-coeff") ?? 0;
  if (kind === "none" || coefficient === 0) return 0;
  if (kind === "aux_loss") {
    refuse(`--${balancing}`, kind, "is read as global_aux_loss, over the global batch");
  } else if (kind !== "global_aux_loss") {
    return refuse(`--${balancing}`, kind, "only none, aux_loss and global_aux_loss");
  }
  return coefficient;
}

function dropPolicyOf(
  o: OptionList,
  refuse: Refuse,
  capacity: number | undefined,
): string | undefined {
  const policy = o.text("--moe-token-drop-policy") ?? "probs";
  if (capacity === undefined) return undefined;
  if (policy === "probs") return "probability";
  return policy === "position"
    ? policy
    : refuse("--moe-token-drop-policy", policy, "only probs and position");
}
