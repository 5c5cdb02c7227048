/**
 * Which ranks need the same data, a slice of it, or data of their own, along the axes of a mesh:
 * OVERLORD's ClientPlaceTree (arXiv:2504.09844). Data is fetched once per group that shares it, and
 * sent on from there, so that what is loaded does not grow with tensor or pipeline parallelism.
 */
import { TriremeError, nearestName } from "@trireme/core";

/** How the ranks along an axis share data. */
export type DataSharing =
  /** Each has samples of its own: data parallelism. */
  | "distinct"
  /** Each has its part of the tokens of the same samples: context parallelism. */
  | "sliced"
  /** All have the same: tensor and pipeline parallelism. */
  | "same";

const sharings: readonly DataSharing[] = ["distinct", "sliced", "same"];

/** An axis of the mesh; axes are given with the first varying fastest over ranks. */
export interface PlaceAxis {
  readonly name: string;
  readonly size: number;
  readonly data: DataSharing;
}

/** A mesh as the floor above knows it: sizes by name, and an order of names. */
export interface PlaceMesh {
  /** How the ranks along each axis share data. */
  readonly axes: Readonly<Record<string, DataSharing>>;
  /** Size of each axis; 1 where none is given. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Names joined by "-", the first varying fastest over ranks, as Megatron-LM writes it: "tp-cp-dp-pp". */
  readonly order: string;
}

/** What one rank needs, and from whom. */
export interface Place {
  readonly rank: number;
  /** Which share of the global batch, in 0..shares − 1. */
  readonly share: number;
  /** Which slice of each sample, in 0..slices − 1. */
  readonly slice: number;
  /** The rank that fetches this share and slice: the lowest that needs it. */
  readonly fetcher: number;
}

/** The places of all ranks. */
export interface PlaceTree {
  readonly axes: readonly PlaceAxis[];
  readonly ranks: number;
  /** Different shares of a batch: the product of the "distinct" axes. */
  readonly shares: number;
  /** Slices of each sample: the product of the "sliced" axes. */
  readonly slices: number;
  /** Ranks that need each share and slice: the product of the "same" axes. */
  readonly copies: number;
  readonly places: readonly Place[];
}

/**
 * Builds the places from the axes of a mesh. Axes of one kind count the first of them fastest.
 * @throws TriremeError "PLACE" on a size that is no count, a name twice or not in the order.
 */
export function placeTree(mesh: PlaceMesh | readonly PlaceAxis[]): PlaceTree {
  const axes = "order" in mesh ? axesOf(mesh) : mesh;
  const product = (kind: DataSharing): number =>
    axes.reduce((size, axis) => (axis.data === kind ? size * axis.size : size), 1);
  for (const { name, size, data } of axes) {
    if (!Number.isInteger(size) || size < 1)
      throw new TriremeError("PLACE", `axis ${name} has size ${size}; use a positive integer`);
    if (!sharings.includes(data)) {
      throw new TriremeError(
        "PLACE",
        `axis ${name} shares data as ${JSON.stringify(data)}; use ${sharings.join(", ")}`,
      );
    }
  }
  const names = axes.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new TriremeError("PLACE", `axis ${twice} comes twice`);

  const ranks = axes.reduce((size, axis) => size * axis.size, 1);
  const places = Array.from({ length: ranks }, (_, rank): Place => {
    const number = { distinct: 0, sliced: 0, same: 0 };
    const stride = { distinct: 1, sliced: 1, same: 1 };
    let rest = rank;
    let span = 1;
    let fetcher = rank;
    for (const { size, data } of axes) {
      const at = rest % size;
      number[data] += at * stride[data];
      stride[data] *= size;
      // The fetcher is where every shared axis is at 0.
      if (data === "same") fetcher -= at * span;
      rest = (rest - at) / size;
      span *= size;
    }
    return { rank, share: number.distinct, slice: number.sliced, fetcher };
  });
  return {
    axes,
    ranks,
    shares: product("distinct"),
    slices: product("sliced"),
    copies: product("same"),
    places,
  };
}

/** The ranks that a fetcher sends its data on to, itself left out; [] for one that does not fetch. */
export function receiversOf(tree: PlaceTree, fetcher: number): readonly number[] {
  return tree.places
    .filter((place) => place.fetcher === fetcher && place.rank !== fetcher)
    .map(({ rank }) => rank);
}

function axesOf({ axes, sizes, order }: PlaceMesh): readonly PlaceAxis[] {
  const names = order === "" ? [] : order.split("-");
  const known = Object.keys(axes);
  for (const name of Object.keys(sizes)) {
    if (!names.includes(name)) {
      const nearest = nearestName(name, names);
      throw new TriremeError(
        "PLACE",
        `a size is given for "${name}", but the order "${order}" has no such axis${nearest === undefined ? "" : `; did you mean "${nearest}"?`}`,
      );
    }
  }
  return names.map((name) => {
    const data = axes[name];
    if (data === undefined) {
      throw new TriremeError(
        "PLACE",
        `the order "${order}" has axis "${name}", but how it shares data is not given; given are: ${known.join(", ") || "none"}`,
      );
    }
    return { name, size: sizes[name] ?? 1, data };
  });
}
