/** Kubernetes nodes: what `kubectl get nodes -o json` prints, a list or one node. */
import { FormatError } from "./format-error.ts";
import type { InventoryHost } from "./inventory.ts";
import { type Located, LocatedReader, parseLocatedJson } from "./located.ts";

export interface KubernetesOptions {
  readonly file?: string;
  /** Label of the rack; the known ones, in order, when left out. */
  readonly rackLabel?: string;
}

/** Labels that say where a node stands, the first that it has; topograph's leaf counts as a rack. */
const rackLabels = [
  "topology.kubernetes.io/rack",
  "failure-domain.beta.kubernetes.io/rack",
  "network.topology.nvidia.com/leaf",
  "rack",
];
const zoneLabels = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
const acceleratorLabels = [
  "nvidia.com/gpu.product",
  "amd.com/gpu.product-name",
  "gpu.intel.com/product",
  "cloud.google.com/gke-accelerator",
  "cloud.google.com/gke-tpu-accelerator",
  "k8s.amazonaws.com/accelerator",
];
/** Extended resources that count accelerators. */
const resources = ["nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "gpu.intel.com/i915"];

/**
 * Parses nodes; those without accelerators are in the list with 0.
 * @throws FormatError with line and reason.
 */
export function parseKubernetesNodes(
  text: string,
  options: KubernetesOptions = {},
): InventoryHost[] {
  const { file = "nodes.json" } = options;
  const read = new LocatedReader(file);
  const root = parseLocatedJson(text, file);
  const kind = read.text(read.need(root, "kind", "the file"), "kind");
  if (kind !== "Node" && kind !== "List" && kind !== "NodeList") {
    read.fail(root, `kind is "${kind}"; expected Node, NodeList or List`);
  }
  const items = kind === "Node" ? [root] : read.list(read.need(root, "items", kind), "items");
  const seen = new Set<string>();
  return items.map((item) => {
    const host = nodeOf(item, read, options);
    if (seen.has(host.name)) {
      throw new FormatError(file, item.line, `node "${host.name}" stands twice`);
    }
    seen.add(host.name);
    return host;
  });
}

function nodeOf(node: Located, read: LocatedReader, options: KubernetesOptions): InventoryHost {
  const kind = read.may(node, "kind", "node");
  if (kind && read.text(kind, "kind") !== "Node") {
    read.fail(kind, `an item is a ${read.text(kind, "kind")}, not a Node`);
  }
  const metadata = read.need(node, "metadata", "node");
  const name = read.text(read.need(metadata, "name", "metadata"), "metadata.name");
  if (name === "") read.fail(metadata, "metadata.name is empty");
  const labels = read.may(metadata, "labels", "metadata");
  const label = (keys: readonly string[]): string | undefined => {
    for (const key of keys) {
      const value = labels && read.may(labels, key, "labels");
      if (value) return read.text(value, `label ${key}`);
    }
    return undefined;
  };
  const status = read.need(node, "status", `node "${name}"`);
  const capacity = read.need(status, "capacity", `status of "${name}"`);
  let accelerators = 0;
  for (const resource of resources) {
    const value = read.may(capacity, resource, "capacity");
    if (!value) continue;
    const count = read.text(value, `capacity ${resource}`);
    if (!/^\d+$/.test(count))
      read.fail(value, `capacity ${resource} is "${count}", no whole number`);
    accelerators += Number(count);
  }
  const spec = read.may(node, "spec", `node "${name}"`);
  const cordon = spec && read.may(spec, "unschedulable", "spec");
  const cordoned = cordon?.kind === "scalar" && cordon.value === true;
  const conditions = read.list(
    read.need(status, "conditions", `status of "${name}"`),
    "status.conditions",
  );
  const ready = conditions.some(
    (c) =>
      read.text(read.need(c, "type", "condition"), "condition type") === "Ready" &&
      read.text(read.need(c, "status", "condition"), "condition status") === "True",
  );
  const rack = label(options.rackLabel === undefined ? rackLabels : [options.rackLabel]);
  const zone = label(zoneLabels);
  return {
    name,
    accelerator: label(acceleratorLabels),
    accelerators,
    ready: ready && !cordoned,
    ...(rack !== undefined && { rack }),
    ...(zone !== undefined && { zone }),
  };
}
