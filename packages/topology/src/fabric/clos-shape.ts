/**
 * The arithmetic of folded Clos networks: which cables lead from a node towards an endpoint, with
 * nothing stored but the sizes of the levels. Nodes and cables are numbered as in a parallel-port
 * generalised fat tree (Zahavi: D-Mod-K routing, 2010, section 2): a switch of level l is a
 * subtree s of that level and one of its W_l copies; the child (s', b') has cables to the copies
 * b'·w + j of the subtree floor(s' / m), `links` to each.
 */

/** One level of switches; level 0 is next to the hosts. */
export interface ClosLevel {
  /** Subtrees of the level below that meet in one of this level (m). */
  readonly children: number;
  /** Parents of each switch below (w); 1 at level 0, where the children are endpoints. */
  readonly parents: number;
  /** Parallel cables to each parent (p). */
  readonly links: number;
  /** Subtrees of this level. */
  readonly subtrees: number;
  /** Switches per subtree (W): the product of `parents` up to here. */
  readonly copies: number;
  /** Number of the first switch and of the first cable to the level below. */
  readonly firstSwitch: number;
  readonly firstCable: number;
}

export interface ClosShape {
  readonly kind: "clos";
  readonly endpoints: number;
  /** NICs of a host; endpoint = host · nics + nic. */
  readonly nics: number;
  /** NIC i of every host of a set goes to leaf i of the set (rails), or all NICs to one leaf. */
  readonly rails: boolean;
  readonly levels: readonly ClosLevel[];
}

/** Leaf switch (subtree of level 0) of an endpoint. */
export function leafOf(shape: ClosShape, endpoint: number): number {
  const width = shape.levels[0]!.children;
  if (!shape.rails) return Math.trunc(endpoint / width);
  const host = Math.trunc(endpoint / shape.nics);
  return Math.trunc(host / width) * shape.nics + (endpoint - host * shape.nics);
}

/** Place of an endpoint among those of its leaf. */
export function slotOf(shape: ClosShape, endpoint: number): number {
  const at = shape.rails ? Math.trunc(endpoint / shape.nics) : endpoint;
  return at % shape.levels[0]!.children;
}

/**
 * Writes the links that lead from `node` to `endpoint` on shortest paths, and returns how many: the
 * cables down to the child that holds the endpoint, or else all cables up.
 */
export function closNextLinks(
  shape: ClosShape,
  node: number,
  endpoint: number,
  links: Int32Array,
): number {
  const { levels } = shape;
  if (node < shape.endpoints) {
    links[0] = 2 * (levels[0]!.firstCable + node);
    return node === endpoint ? 0 : 1;
  }
  let l = levels.length - 1;
  while (levels[l]!.firstSwitch > node) l--;
  const level = levels[l]!;
  const index = node - level.firstSwitch;
  const subtree = Math.trunc(index / level.copies);
  // Subtree of level l-1, then of level l, that holds the endpoint.
  let child = leafOf(shape, endpoint);
  let home = child;
  for (let i = 1; i <= l; i++) {
    child = home;
    home = Math.trunc(home / levels[i]!.children);
  }
  if (home !== subtree) {
    const up = levels[l + 1];
    if (!up) return 0;
    const count = up.parents * up.links;
    const firstCable = up.firstCable + index * count;
    for (let i = 0; i < count; i++) links[i] = 2 * (firstCable + i);
    return count;
  }
  if (l === 0) {
    links[0] = 2 * (level.firstCable + endpoint) + 1;
    return 1;
  }
  const copy = index - subtree * level.copies;
  const below = Math.trunc(copy / level.parents);
  const port = copy - below * level.parents;
  const childIndex = child * levels[l - 1]!.copies + below;
  const firstCable = level.firstCable + (childIndex * level.parents + port) * level.links;
  for (let i = 0; i < level.links; i++) links[i] = 2 * (firstCable + i) + 1;
  return level.links;
}
