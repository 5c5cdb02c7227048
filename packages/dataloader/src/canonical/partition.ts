/**
 * MosaicML Streaming's elastically deterministic order (streaming/base/partition): an epoch is dealt over
 * a fixed number of canonical nodes, each with a run of consecutive samples, and read across them in
 * turn, so that with the same global batch each step has the same samples on any number of nodes. In
 * closed form: where a rank's next sample stands is worked out, not looked up, so any place is found at
 * once and nothing grows with the data.
 */
import { TriremeError } from "@trireme/core";

/** Who reads an epoch. */
export interface CanonicalPartitionOptions {
  /** Samples of the epoch. */
  readonly samples: number;
  /** Fixed over a run; the nodes at its start, as a rule. */
  readonly canonicalNodes: number;
  /** Nodes that read now. Without `initialNodes`, one of the two divides the other. */
  readonly nodes: number;
  readonly ranksPerNode: number;
  /** Default 1. */
  readonly workersPerRank?: number;
  /** Samples of a rank in a step. */
  readonly batch: number;
  /** Samples of the epoch that were seen before; rounded down to a multiple of the nodes. Default 0. */
  readonly skip?: number;
  /**
   * Nodes at the start of the run ("relaxed"): a step is dealt as over these, then cut for the nodes of
   * now, which need not divide the canonical ones, only the global batch.
   */
  readonly initialNodes?: number;
}

/** An epoch, dealt out. */
export interface CanonicalPartition {
  /** Steps left in the epoch. */
  readonly steps: number;
  /**
   * Sample that a rank reads at a place of its batch of a step; −1 is padding. At the end of an epoch
   * that does not divide, some samples are repeated.
   * @throws TriremeError "RANGE" for a node, rank or place that there is not.
   */
  sample(step: number, node: number, rank: number, place: number): number;
  /** The worker of each rank that makes the batch of a step: they take turns. */
  worker(step: number): number;
}

/** @throws TriremeError "PARTITION" where the numbers do not divide, naming those that would. */
export function canonicalPartition(options: CanonicalPartitionOptions): CanonicalPartition {
  const { samples, canonicalNodes, nodes, ranksPerNode, batch, skip = 0 } = options;
  const { workersPerRank = 1, initialNodes } = options;
  const counts = { samples, canonicalNodes, nodes, ranksPerNode, workersPerRank, batch };
  for (const [name, value] of Object.entries({ ...counts, initialNodes: initialNodes ?? 1 })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TriremeError("PARTITION", `${name} ${value} is not a positive integer`);
  }
  if (!Number.isSafeInteger(skip) || skip < 0)
    throw new TriremeError("PARTITION", `skip ${skip} is not a count of samples`);
  const fits = divides(nodes, canonicalNodes);
  const order =
    initialNodes === undefined || fits
      ? dealt(options, nodes, batch)
      : relaxed(options, initialNodes);
  return {
    ...order,
    sample(step, node, rank, place) {
      if (!Number.isSafeInteger(step) || step < 0)
        throw new TriremeError("RANGE", `step ${step} is not a non-negative integer`);
      within("node", node, nodes);
      within("rank", rank, ranksPerNode);
      within("place", place, batch);
      return order.sample(step, node, rank, place);
    },
  };
}

function within(name: string, value: number, count: number): void {
  if (Number.isInteger(value) && value >= 0 && value < count) return;
  throw new TriremeError("RANGE", `${name} ${value} is outside 0..${count - 1}`);
}

/** The order of a run that began on `initialNodes`, cut for the nodes of now. */
function relaxed(options: CanonicalPartitionOptions, initialNodes: number): CanonicalPartition {
  const { nodes, ranksPerNode, batch } = options;
  const globalBatch = nodes * ranksPerNode * batch;
  const ranks = initialNodes * ranksPerNode;
  if (globalBatch % ranks !== 0) {
    throw new TriremeError(
      "PARTITION",
      `global batch ${globalBatch} = nodes(${nodes}) x ranksPerNode(${ranksPerNode}) x batch(${batch}) is not a multiple of the ${ranks} ranks at the start; it must not change during a run`,
    );
  }
  const firstBatch = globalBatch / ranks;
  const first = dealt(options, initialNodes, firstBatch);
  return {
    ...first,
    sample(step, node, rank, place) {
      const at = (node * ranksPerNode + rank) * batch + place;
      const owner = Math.floor(at / firstBatch);
      const firstNode = Math.floor(owner / ranksPerNode);
      return first.sample(step, firstNode, owner % ranksPerNode, at % firstBatch);
    },
  };
}

function divides(a: number, b: number): boolean {
  return a % b === 0 || b % a === 0;
}

/** The order over as many nodes as divide the canonical ones, or are a multiple of them. */
function dealt(
  {
    samples,
    canonicalNodes,
    ranksPerNode,
    workersPerRank = 1,
    skip = 0,
  }: CanonicalPartitionOptions,
  nodes: number,
  batch: number,
): CanonicalPartition {
  if (!divides(nodes, canonicalNodes)) {
    throw new TriremeError(
      "PARTITION",
      `nodes(${nodes}) and canonicalNodes(${canonicalNodes}) do not divide one another; give initialNodes to go on from a run that began on others`,
    );
  }
  const row = Math.ceil(samples / canonicalNodes);
  // Nodes that share a canonical one need equal parts of it.
  const share = Math.max(1, nodes / canonicalNodes);
  const padded = Math.ceil(row / share) * share;
  const seen = skip - (skip % nodes);
  const total = canonicalNodes * padded;
  const world = nodes * ranksPerNode;
  // Repeats that fill the last step count as seen.
  const most = samples + world - (samples % world);
  if (skip > Math.max(total, most)) {
    throw new TriremeError(
      "PARTITION",
      `skip ${skip} is beyond the ${samples} samples of the epoch`,
    );
  }
  const perNode = Math.max(0, total - seen) / nodes;
  const perRank = Math.ceil(perNode / ranksPerNode);
  const round = workersPerRank * batch;
  const steps = Math.ceil(perRank / round) * workersPerRank;

  const start = (node: number): number => Math.floor((node * samples) / canonicalNodes);
  /** The sample at a place of the order across canonical nodes. */
  const at = (position: number): number => {
    const node = position % canonicalNodes;
    let column = (position - node) / canonicalNodes;
    // Too few samples: all are repeated, row by row.
    if (samples < canonicalNodes || (samples === canonicalNodes && nodes > canonicalNodes))
      return (node * padded + column) % samples;
    // Columns of padding repeat those shortly before the end.
    if (column >= row) column = modulo(column - padded + row - share + 1, row);
    const length = start(node + 1) - start(node);
    return start(node) + Math.min(column, length - 1);
  };
  const fill = ranksPerNode - (perNode % ranksPerNode);
  return {
    steps,
    worker: (step) => step % workersPerRank,
    sample(step, node, rank, place) {
      const index = step * batch + place;
      if (index >= perRank) return -1;
      let inNode = index * ranksPerNode + rank;
      // The last row of ranks is filled with what other ranks had in the row before.
      if (inNode >= perNode) {
        const enough = ranksPerNode + fill - 1 <= perNode;
        inNode = enough ? inNode - ranksPerNode - fill + 1 : (inNode - perNode) % perNode;
      }
      return at(seen + inNode * nodes + node);
    },
  };
}

function modulo(a: number, b: number): number {
  return ((a % b) + b) % b;
}
