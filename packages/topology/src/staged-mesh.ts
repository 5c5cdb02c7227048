/**
 * Meshes without symmetry (HexiScale, arXiv 2409.01143): every pipeline has stages of its own, and
 * every stage its own width (tensor parallelism) and layers. Ranks run stage by stage, pipeline by
 * pipeline. A layer's gradients are summed piece by piece: the layer is cut in as many pieces as its
 * widest stage has ranks, and a narrower rank holds several of them.
 */
import { TriremeError } from "@trireme/core";

/** One stage of one pipeline. */
export interface StageOptions {
  /** Ranks that share the stage's layers. */
  readonly width: number;
  readonly layers: number;
}

export interface StagedMesh {
  readonly pipelines: readonly (readonly StagedStage[])[];
  readonly ranks: number;
  /** Layers of the model, the same in every pipeline. */
  readonly layers: number;
}

export interface StagedStage {
  readonly width: number;
  readonly firstRank: number;
  readonly firstLayer: number;
  readonly layers: number;
}

/**
 * A mesh of pipelines with different stages.
 * @throws TriremeError "MESH" when a width or a count of layers is not a positive integer, or two
 * pipelines hold different numbers of layers.
 */
export function defineStagedMesh(pipelines: readonly (readonly StageOptions[])[]): StagedMesh {
  if (pipelines.length === 0) throw new TriremeError("MESH", "a staged mesh needs a pipeline");
  let ranks = 0;
  let total: number | undefined;
  const built = pipelines.map((stages, p) => {
    let firstLayer = 0;
    const row = stages.map(({ width, layers }, s): StagedStage => {
      for (const [what, n] of Object.entries({ width, layers })) {
        if (!Number.isSafeInteger(n) || n < 1) {
          throw new TriremeError(
            "MESH",
            `pipeline ${p}, stage ${s}: ${what} is ${n}; use an integer from 1 up`,
          );
        }
      }
      const stage = { width, firstRank: ranks, firstLayer, layers };
      ranks += width;
      firstLayer += layers;
      return stage;
    });
    total ??= firstLayer;
    if (firstLayer !== total || firstLayer === 0) {
      throw new TriremeError(
        "MESH",
        `pipeline ${p} holds ${firstLayer} layers, pipeline 0 ${total}; all must hold the same, 1 or more`,
      );
    }
    return row;
  });
  return { pipelines: built, ranks, layers: total! };
}

/** Place of a rank: its pipeline, its stage there, and its shard of the stage. */
export interface StagedCoordinate {
  readonly pipeline: number;
  readonly stage: number;
  readonly shard: number;
}

/**
 * Where a rank stands.
 * @throws TriremeError "MESH" when the rank is not in the mesh.
 */
export function stagedCoordinate(mesh: StagedMesh, rank: number): StagedCoordinate {
  if (Number.isInteger(rank) && rank >= 0 && rank < mesh.ranks) {
    for (const [pipeline, stages] of mesh.pipelines.entries()) {
      for (const [stage, { firstRank, width }] of stages.entries()) {
        if (rank < firstRank + width) return { pipeline, stage, shard: rank - firstRank };
      }
    }
  }
  throw new TriremeError("MESH", `rank ${rank} is outside the mesh's 0..${mesh.ranks - 1}`);
}

/** The ranks that share a rank's stage: its tensor-parallel group, ascending. */
export function stagedTensorGroup(mesh: StagedMesh, rank: number): number[] {
  const { pipeline, stage } = stagedCoordinate(mesh, rank);
  const { firstRank, width } = mesh.pipelines[pipeline]![stage]!;
  return Array.from({ length: width }, (_, i) => firstRank + i);
}

/**
 * The first ranks of a rank's pipeline, one a stage in order: they pass activations on, and hand
 * them out inside their stages.
 */
export function stagedLeaders(mesh: StagedMesh, rank: number): number[] {
  const { pipeline } = stagedCoordinate(mesh, rank);
  return mesh.pipelines[pipeline]!.map((stage) => stage.firstRank);
}

/** A piece of a layer and the ranks that hold it, one a pipeline. */
export interface LayerPiece {
  readonly piece: number;
  readonly pieces: number;
  readonly ranks: readonly number[];
}

/**
 * The groups that sum a layer's gradients: one for each piece.
 * @throws TriremeError "MESH" when there is no such layer, or a width does not divide the widest.
 */
export function layerGroups(mesh: StagedMesh, layer: number): LayerPiece[] {
  if (!Number.isInteger(layer) || layer < 0 || layer >= mesh.layers) {
    throw new TriremeError("MESH", `layer ${layer} is outside the mesh's 0..${mesh.layers - 1}`);
  }
  const holders = mesh.pipelines.map((stages) =>
    stages.find((s) => layer < s.firstLayer + s.layers)!,
  );
  const pieces = Math.max(...holders.map((s) => s.width));
  const odd = holders.find((s) => pieces % s.width !== 0);
  if (odd) {
    throw new TriremeError(
      "MESH",
      `layer ${layer}: a stage of ${odd.width} ranks cannot hold whole pieces of ${pieces}; widths must divide the widest`,
    );
  }
  return Array.from({ length: pieces }, (_, piece) => ({
    piece,
    pieces,
    ranks: holders.map((s) => s.firstRank + Math.floor((piece * s.width) / pieces)),
  }));
}
