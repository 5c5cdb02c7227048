/**
 * The slow and obvious way to shard: whole tensors cut by slicing and joining whole dims, and buffers
 * that are really joined. Shares nothing with the package but the layout's numbers.
 */
import { type GlobalTensor, type ParallelLayout, dtypeBits } from "@trireme/checkpoint";

interface Dense {
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function sliceDim({ shape, bytes }: Dense, dim: number, from: number, to: number): Dense {
  const outer = product(shape.slice(0, dim));
  const row = outer === 0 || shape[dim] === 0 ? 0 : bytes.length / outer / shape[dim]!;
  const rows = Array.from({ length: outer }, (_, i) =>
    bytes.slice((i * shape[dim]! + from) * row, (i * shape[dim]! + to) * row),
  );
  return { shape: shape.with(dim, to - from), bytes: join(rows) };
}

function concatDim(parts: readonly Dense[], dim: number): Dense {
  const outer = product(parts[0]!.shape.slice(0, dim));
  const rows = Array.from({ length: outer }, (_, i) =>
    parts.map(({ bytes }) =>
      bytes.slice((i * bytes.length) / outer, ((i + 1) * bytes.length) / outer),
    ),
  );
  const size = parts.reduce((sum, { shape }) => sum + shape[dim]!, 0);
  return { shape: parts[0]!.shape.with(dim, size), bytes: join(rows.flat()) };
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(pieces));
}

function splitByTensor(whole: Dense, tensor: GlobalTensor, rank: number, tp: number): Dense {
  if (tensor.tensorParallel === undefined) return whole;
  const { dim } = tensor.tensorParallel;
  let before = 0;
  const parts = (tensor.tensorParallel.parts ?? [{ size: whole.shape[dim]! }]).map((part) => {
    const fused = sliceDim(whole, dim, before, before + part.size);
    before += part.size;
    const units = part.units ?? part.size;
    const unit = part.size / units;
    if (units < tp) {
      const held = Math.floor((rank * units) / tp);
      return sliceDim(fused, dim, held * unit, (held + 1) * unit);
    }
    const [from, to] = [rank, rank + 1].map((r) => Math.floor((units * r) / tp) * unit);
    return sliceDim(fused, dim, from!, to!);
  });
  return concatDim(parts, dim);
}

/** What a rank holds, by "stage/tensor": bytes, where it holds any. */
export function directShard(
  tensors: readonly GlobalTensor[],
  values: readonly Uint8Array[],
  layout: ParallelLayout,
  rank: number,
): ReadonlyMap<string, Uint8Array> {
  const { tp, cp, dp, pp, ep, expertTp, zero, partition } = layout;
  const perStage = tp * cp * dp;
  const pipeline = Math.floor(rank / perStage);
  const inStage = rank % perStage;
  const held = new Map<string, Uint8Array>();
  const last = pp * layout.vpp - 1;
  let layer = 0;
  const rankStages = layout.stageRank.flatMap((r, s) => (r === pipeline ? [s] : []));
  for (let stage = 0; stage <= last; stage++) {
    const first = layer;
    layer += layout.stageLayers[stage]!;
    if (layout.stageRank[stage] !== pipeline) continue;
    const mine = tensors.map(({ place }) => {
      if (typeof place === "number") return place >= first && place < layer;
      if (place === "first") return stage === 0;
      if (place === "last") return stage === last;
      if (place === "every") return stage === rankStages[0];
      return stage === 0 || (stage === last && !rankStages.includes(0));
    });
    for (const expert of [false, true]) {
      const [ways, tensorRank] = expert ? [expertTp, inStage % expertTp] : [tp, inStage % tp];
      const expertRank = Math.floor(inStage / expertTp) % ep;
      const member = expert ? Math.floor(inStage / expertTp / ep) : Math.floor(inStage / tp);
      const members = perStage / (expert ? expertTp * ep : tp);
      const buffers = new Map<string, { name: string; bytes: Uint8Array; width: number }[]>();
      for (const [index, tensor] of tensors.entries()) {
        if (!mine[index] || (tensor.experts !== undefined) !== expert) continue;
        let dense: Dense = { shape: tensor.shape, bytes: values[index]! };
        const width = dtypeBits(tensor.dtype) / 8;
        if (tensor.experts !== undefined && "index" in tensor.experts) {
          const { index: number, count } = tensor.experts;
          const low = Math.floor((count * expertRank) / ep);
          const high = Math.floor((count * (expertRank + 1)) / ep);
          if (number < low || number >= high) continue;
        } else if (tensor.experts !== undefined) {
          const { dim } = tensor.experts;
          const count = tensor.shape[dim]!;
          const low = Math.floor((count * expertRank) / ep);
          dense = sliceDim(dense, dim, low, Math.floor((count * (expertRank + 1)) / ep));
        }
        dense = splitByTensor(dense, tensor, tensorRank, ways);
        const name = `${stage}/${tensor.name}`;
        const state = tensor.shape.length > 0 && tensor.state !== undefined;
        const split = (zero === 3 && tensor.shape.length > 0) || (zero > 0 && state);
        if (!split) {
          if (dense.bytes.length > 0) held.set(name, dense.bytes);
        } else if (partition === "tensor") {
          const rows = dense.shape[0] ?? 1;
          const row = rows === 0 ? 0 : dense.bytes.length / rows;
          const share = Math.ceil(rows / members);
          const bytes = dense.bytes.slice(member * share * row, (member + 1) * share * row);
          if (bytes.length > 0) held.set(name, bytes);
        } else {
          const key = `${tensor.dtype} ${tensor.state}`;
          buffers.set(key, [...(buffers.get(key) ?? []), { name, bytes: dense.bytes, width }]);
        }
      }
      for (const buffer of buffers.values()) {
        // Every element of the joined buffer knows its tensor: the share is cut by counting elements.
        const { width } = buffer[0]!;
        const all = join(buffer.map(({ bytes }) => bytes));
        const owners = buffer.flatMap(({ bytes }, i) =>
          new Array<number>(bytes.length / width).fill(i),
        );
        const share = Math.ceil(owners.length / members);
        for (let at = member * share; at < Math.min(owners.length, (member + 1) * share);) {
          const owner = owners[at]!;
          const from = at;
          while (at < Math.min(owners.length, (member + 1) * share) && owners[at] === owner) at++;
          held.set(buffer[owner]!.name, all.slice(from * width, at * width));
        }
      }
    }
  }
  return held;
}
